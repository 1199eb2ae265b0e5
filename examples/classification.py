"""Give texts one of several labels, with the exact probability of each."""

from __future__ import annotations

import structgen as sg

TOPICS = sg.Taxonomy(
    [
        "Sport > Football",
        "Sport > Tennis",
        "Business > Markets",
        "Business > Companies",
        "Science > Space",
    ]
)
TEXTS = [
    "The striker scored twice in the second half of the cup final.",
    "Shares fell sharply after the central bank raised interest rates.",
    "The probe sent back its first pictures of the moons of Saturn.",
]


def main() -> None:
    classifier = sg.Classifier(
        TOPICS, sg.default_lm(), instructions="Decide what the news is about.", calibrate="batch"
    )
    results = classifier.many(TEXTS, progress=False)
    for text, found in zip(TEXTS, results, strict=True):
        print(text)
        for level in found.levels:
            print(f"  {level.probability:.2f} {' > '.join(level.path)}")
        second = found.ranking[1]
        print(f"  next: {second.probability:.2f} {second.label}")
    print(f"{results[0].forward_passes} forward passes for {len(TOPICS)} labels")


if __name__ == "__main__":
    main()
