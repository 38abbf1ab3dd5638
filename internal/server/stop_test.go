package server

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/config"
)

// A server that is told to stop while it starts has stopped well.
func TestAStopWhileAServerStartsIsAGoodOne(t *testing.T) {
	cfg := sick(t)
	loaded, _, err := load(t, nil, nil, "queues: {q: {paused: true}}\ninboxes: {in: {group: {json: .k}}}\n")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Queues, cfg.Inboxes = loaded.Queues, loaded.Inboxes
	var log bytes.Buffer
	cfg.LogFormat = config.LogCompact
	cfg.Log = NewLogger(cfg, nil, &log, false)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Run(ctx, cfg); err != nil {
		t.Errorf("it ends with %v", err)
	}
	if said := log.String(); !strings.Contains(said, "stopped") || strings.Contains(said, "ERROR") {
		t.Errorf("it says:\n%s", said)
	}
	runs(t, cfg) // nothing is left of it
}
