package grid

import "github.com/reprisehq/reprise/internal/job"

// nameBytesMax bounds the names of sessions, services, engines and hosts.
const nameBytesMax = 256

func checkName(field, s string) error {
	if why := job.WrongName(s, nameBytesMax); why != "" {
		return refuse(field, "%s %s", field, why)
	}
	return nil
}
