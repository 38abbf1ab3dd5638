package policy

// ProblemsMax is for tests from outside.
const ProblemsMax = problemsMax
