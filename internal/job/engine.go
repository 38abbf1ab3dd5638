package job

// GridEngine is what an engine is beside a holder of leases: a process with slots
// on a host. It logs in, sends a heartbeat for all its slots, and takes tasks of
// sessions (spec/grid.md, decision 8). A GridEngine is never changed in place.
type GridEngine struct {
	Host     string // copies of one task run on different ones
	Slots    int
	Epoch    int64  // of this login; higher than every earlier one
	LoggedIn Millis // date of the login
	Heard    Millis // date of its latest word

	Health   Health // as a possible black hole
	Polls    bool   // takes tasks call by call, beside or instead of a stream
	Draining bool   // gets nothing more; what it runs it may end
	Lost     bool   // was not heard of for too long; its tasks run elsewhere
	Awaited  bool   // was not heard of since the server started: it is not to blame for what it lost

	// Stopping are the tasks that it was told to stop because they took too
	// long, by the hashes of their tokens. It gets nothing until it says that it
	// has stopped them.
	Stopping []uint64
}

// SlotsMax is the most slots of one engine.
const SlotsMax = 10_000
