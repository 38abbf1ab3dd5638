package job

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// WrongName says why s is no name of at most bytesMax bytes; "" = it is one. A
// comma parts lists, the other characters are kept free for patterns
// (spec/jobs.md, names).
func WrongName(s string, bytesMax int) string {
	at := strings.IndexAny(s, ",\x00*?[]{}\\")
	switch {
	case s == "":
		return "must not be empty"
	case len(s) > bytesMax:
		return "must not be longer than " + strconv.Itoa(bytesMax) + " bytes"
	case !utf8.ValidString(s):
		return "must be UTF-8"
	case at < 0:
		return ""
	case s[at] == ',':
		return "must not contain ','"
	case s[at] == 0:
		return "must not contain null bytes"
	}
	return "must not contain '" + s[at:at+1] + "' (reserved)"
}
