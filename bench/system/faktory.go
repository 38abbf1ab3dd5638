package system

import (
	"context"
	"errors"
)

// faktory is in the list although it cannot be measured: the reason is looked
// for each time, so that it is the one of this machine and day.
func faktory() System {
	return System{
		Name:       "Faktory",
		Class:      D0,
		Durability: "its own Redis with snapshots",
		Install: func(ctx context.Context, env *Env) (string, error) {
			const module = "github.com/contribsys/faktory"
			if _, err := env.output(ctx, "", "go", "list", "-m", module+"@latest"); err != nil {
				env.Log("%v", err)
				return "", errors.New("neither its server nor its Go client can be had as modules")
			}
			return "", errors.New("its modules can be had by now, but this harness was written without them")
		},
	}
}
