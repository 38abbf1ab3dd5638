// Package examples holds the example data, for the demo.
package examples

import _ "embed"

// Webhooks is webhooks.ndjson: one event per line.
//
//go:embed webhooks.ndjson
var Webhooks []byte
