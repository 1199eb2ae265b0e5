"""Design lint: advice on schemas that compile, but make a model's work harder than need be."""

from structgen.linter.finding import DesignWarning as DesignWarning
from structgen.linter.finding import Finding as Finding
from structgen.linter.rules import RULES as RULES
from structgen.linter.run import ignore_in_class as ignore_in_class
from structgen.linter.run import lint as lint
