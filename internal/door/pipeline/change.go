package pipeline

import "github.com/reprisehq/reprise/internal/connect"

func (t *intake) change(r connect.Records) []connect.Records { return []connect.Records{r} }
