package job

// Unique is a key that one job has at a time, over all queues (core.md
// section 7).
type Unique struct {
	Key   string
	While UniqueScope
}

// UniqueScope is how long a job has its unique key, and in which states the one that
// has it is in the way of a newcomer.
type UniqueScope uint8

// The scopes, each longer than the one before.
const (
	WhileQueued  UniqueScope = iota // until it is taken
	WhileActive                     // until it is finished
	WhileExists                     // until it is gone
	UniqueScopes                    // how many there are
)

func (s UniqueScope) String() string { return [...]string{"queued", "active", "exists"}[s] }

// Holds reports whether the scope covers a state.
func (s UniqueScope) Holds(in State) bool {
	switch s {
	case WhileQueued:
		return in == Scheduled || in == Ready
	case WhileActive:
		return in.Open()
	case WhileExists, UniqueScopes:
	}
	return in != None
}

// Batch says how jobs with the same key become one: the first that waits takes
// in what follows, as long as its own conditions hold.
type Batch struct {
	Key  string // over all queues
	When string // whether it takes a newcomer in: an expression over both payloads
	Fold string // what its payload is then: an expression over both payloads
}
