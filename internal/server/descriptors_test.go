package server

import (
	"log/slog"
	"testing"
)

func TestConnectionsLeaveDescriptorsToTheStore(t *testing.T) {
	for _, c := range []struct{ most, descriptors, want int }{
		{65536, 0, 65536}, {65536, 1 << 20, 65536}, {65536, 65536, 64512}, {100, 65536, 100}, {65536, 1024, 512}, {65536, 1, 1},
	} {
		if got := connectionsMax(c.most, c.descriptors, slog.New(slog.DiscardHandler)); got != c.want {
			t.Errorf("%d of %d descriptors: %d connections, not %d", c.most, c.descriptors, got, c.want)
		}
	}
}
