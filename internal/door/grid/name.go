package grid

import (
	"strconv"
	"strings"
)

// nameBytesMax bounds the names of sessions, services, engines and hosts.
const nameBytesMax = 256

// wrongName says why s is no name; "" = it is one. The words are those of the
// other doors: a comma parts lists, the others are kept free for patterns.
func wrongName(s string) string {
	at := strings.IndexAny(s, ",\x00*?[]{}\\")
	switch {
	case s == "":
		return "must not be empty"
	case len(s) > nameBytesMax:
		return "must not be longer than " + strconv.Itoa(nameBytesMax) + " bytes"
	case at < 0:
		return ""
	case s[at] == ',':
		return "must not contain ','"
	case s[at] == 0:
		return "must not contain null bytes"
	}
	return "must not contain '" + s[at:at+1] + "' (reserved)"
}

func checkName(field, s string) error {
	if why := wrongName(s); why != "" {
		return refuse(field, "%s %s", field, why)
	}
	return nil
}
