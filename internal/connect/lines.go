package connect

import "time"

// Lines makes events of the lines of one stream: a parser, or what joins lines that
// belong together.
type Lines interface {
	// Line appends the events that are whole with a line, and says how many they are.
	// held is how many of the last lines, this one among them, wait for more: a source
	// reads these again if the process ends before they are taken.
	Line(dst, line []byte, now time.Time) (out []byte, events, held int)
	// Rest appends what waits, because nothing more comes soon.
	Rest(dst []byte, now time.Time) (out []byte, events int)
}
