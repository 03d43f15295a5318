package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mockbench/engine"
	"mockbench/engine/backend"
)

// Start builds the engine of a worker, waits for its start-up time (wall time) and runs it. It returns when the worker
// can serve, or the reason why it never will: an *engine.SettingError for a wrong option, ctx's error if that ends
// first. ctx does not matter afterwards.
func Start(ctx context.Context, o Options) (*Worker, error) {
	if o.Clock == nil {
		return nil, errors.New("live: a worker needs a clock")
	}
	if o.Startup < 0 {
		return nil, &engine.SettingError{Setting: "startup_time", Kind: engine.KindRange, Given: fmt.Sprint(o.Startup),
			Allowed: "must not be negative"}
	}
	group, err := backend.NewGroup(o.Engine, 0, o.Ranks) // whoever makes several workers shifts their seeds in Engine
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, o.Startup); err != nil {
		return nil, err
	}
	return start(o, group, newAlarm()), nil
}

// pause waits for some wall time unless ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}
