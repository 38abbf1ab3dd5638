package result

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/reprisehq/reprise/internal/bench/gauge"
)

// Machine is where runs took place.
type Machine struct {
	System string `json:"system"` // of Debian's os-release, or the like
	gauge.Machine
}

// name is what tells one machine from another.
func (m Machine) name() string {
	return fmt.Sprintf("%s, %d cores, kernel %s, %s", m.CPU, m.Cores, m.Kernel, m.FileSystem)
}

// ReadMachine describes this machine; dir is where servers will keep their
// data.
func ReadMachine(dir string) Machine {
	m := Machine{runtime.GOOS + "/" + runtime.GOARCH, gauge.ReadMachine(dir, 500)}
	if value := gauge.Field("/etc/os-release", "PRETTY_NAME", "="); value != "" {
		m.System = strings.Trim(value, `"`) + ", " + m.System
	}
	return m
}
