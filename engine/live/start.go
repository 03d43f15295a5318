package live

import (
	"context"
	"errors"
	"fmt"

	"mockbench/engine"
	"mockbench/engine/backend"
)

// Start builds the engine of a worker and runs it. The worker takes requests at once and serves them when its start-up
// time, in wall time, is over. Start returns an *engine.SettingError for a wrong option, ctx's error if that has ended.
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
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return start(o, group, newAlarm()), nil
}
