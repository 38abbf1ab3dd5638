package fluent

import (
	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/plugin"
)

var outputs = map[string]func(l *loader, v *plugin.Values) (connect.Sink, error){}
