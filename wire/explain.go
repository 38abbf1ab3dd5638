package wire

// Explanation answers GET /jobs/{id}/explain.
type Explanation struct {
	ID     string `json:"id"`
	Status string `json:"status"`

	Policy     Retry      `json:"policy"` // what holds for the job now, with nothing left out
	PolicyFrom PolicyFrom `json:"policy_from"`
}

// PolicyFrom says of each part of a policy who decided it.
type PolicyFrom struct {
	Limit     string `json:"limit"`
	MaxAge    string `json:"max_age"`
	Place     string `json:"place"`
	Curve     string `json:"curve"`
	Rules     string `json:"rules"`
	LossLimit string `json:"loss_limit"`
}

// Who decides a part of a policy, the most specific first.
const (
	FromJob    = "job"
	FromType   = "type"
	FromQueue  = "queue"
	FromDoor   = "door"
	FromServer = "server"
)
