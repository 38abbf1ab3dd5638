package server

import "log/slog"

// descriptorsKept are for the store, deliveries and refusals: a server whose
// connections have all descriptors cannot write.
const descriptorsKept = 1024

// connectionsMax is how many connections there may be with so many descriptors
// of the process; 0 = any number of those.
func connectionsMax(most, descriptors int, log *slog.Logger) int {
	if descriptors == 0 {
		return most
	}
	can := max(1, descriptors-min(descriptorsKept, descriptors/2))
	if can >= most {
		return most
	}
	log.Info("fewer connections than max-connections: the process may open only so many files",
		"max_connections", most, "open_files", descriptors, "connections", can)
	return can
}
