package fluent

import (
	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/plugin"
)

var inputs = map[string]func(l *loader, v *plugin.Values, tag string) (connect.Source, error){}
