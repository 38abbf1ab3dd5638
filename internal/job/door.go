package job

// Door is the way a job came in (DESIGN, the doors). A door may have a retry
// policy of its own and has idempotency keys of its own.
type Door uint8

// The doors; a job that names none came through jobs.
const (
	DoorJobs Door = iota
	DoorGrid
	DoorInbox
	DoorPipeline
	DoorStream
	Doors // how many there are
)

var doorNames = [Doors]string{"jobs", "grid", "inbox", "pipeline", "stream"}

func (d Door) String() string { return nameOf(doorNames[:], uint8(d)) }
