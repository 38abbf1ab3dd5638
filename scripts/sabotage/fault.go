package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// fault is one line of the product, made wrong.
type fault struct {
	name   string
	breaks string // the invariant (ARCHITECTURE.md), or the section of the specification
	does   string
	file   string
	old    string  // must stand in the file exactly once
	new    string  // differs in one line
	first  []suite // who should notice, asked before everybody else
}

// suite is tests of one package; without names it is all of them.
type suite struct {
	pkg   string
	tests []string
}

func in(pkg string, tests ...string) suite { return suite{pkg, tests} }

func (s suite) String() string {
	if len(s.tests) == 0 {
		return s.pkg
	}
	return s.pkg + " " + strings.Join(s.tests, "|")
}

// stage is a package in the order in which all of its tests are asked about a
// fault that the tests named with it let pass.
type stage struct {
	pkg     string
	timeout time.Duration // after it a test hangs
	slow    bool          // a few tests of it are tried without running all
}

// order goes from the narrow to the wide, so that a fault is caught near the
// place where it is. A package that does not exist yet is left out.
var order = []stage{
	{pkg: "internal/job", timeout: hangs},
	{pkg: "internal/jq", timeout: hangs},
	{pkg: "internal/rule", timeout: hangs},
	{pkg: "internal/store/mem", timeout: hangs},
	{pkg: "internal/store/embedded", timeout: hangs},
	{pkg: "internal/engine", timeout: hangs},
	{pkg: "internal/trace", timeout: hangs},
	{pkg: "internal/door/jobs", timeout: hangs},
	{pkg: "internal/auth", timeout: hangs},
	{pkg: "internal/httpapi", timeout: hangs},
	{pkg: "internal/config", timeout: hangs},
	{pkg: "internal/server", timeout: hangs},
	{pkg: "internal/sim", timeout: hangs},
	{pkg: "test/e2e", timeout: 4 * time.Minute, slow: true},
}

// hangs is how long the tests of a package may take before it counts as a hang.
const hangs = 5 * time.Minute

// table is every fault there is.
func table() []fault {
	return slices.Concat(
		ruleFaults,
		policyFaults,
		engineFaults,
		storeFaults,
		doorFaults,
		protectionFaults,
		operationsFaults,
		walkFaults,
		holdFaults,
		deadFaults,
		securityFaults,
		simProtectionFaults,
		runFaults,
		guardcfgFaults,
		cronFoldFaults,
		cronFaults,
		traceFaults,
		budgetFaults,
		gridCoreFaults,
		assignFaults,
		gridProofFaults,
		gridRowFaults,
		gridTaskFaults,
		gridKillFaults,
		gridModelFaults,
		gridSlackFaults,
		inboxCoreFaults,
		turnFaults,
		inboxDoorFaults,
		inboxViewFaults,
		inboxActFaults,
		inboxBeyondFaults,
		queryFaults,
		wireFaults,
		openapiFaults,
		keysFaults,
		gridRuleFaults,
		gridPlaceFaults,
		gridDoorFaults,
		resultFaults,
		lookFaults,
		workerFaults,
		lockFaults,
		backupFaults,
		receiptFaults,
	)
}

// apply returns the tree with the fault in it.
func (f *fault) apply(t tree) (tree, error) {
	text, ok := t[f.file]
	if !ok {
		return nil, fmt.Errorf("there is no file %s", f.file)
	}
	if n := strings.Count(string(text), f.old); n != 1 {
		return nil, fmt.Errorf("the old text stands %d times in %s, not once", n, f.file)
	}
	return t.with(f.file, strings.Replace(string(text), f.old, f.new, 1)), nil
}
