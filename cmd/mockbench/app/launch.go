package app

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"sync"

	"mockbench/cmd/mockbench/logs"
	"mockbench/cmd/mockbench/settings"
	"mockbench/engine"
	"mockbench/engine/live"
)

// Workers are workers of this process that frontends can find. Its methods are safe for concurrent use.
type Workers struct {
	s      *serving
	failed <-chan error  // the first failure of a worker
	over   chan struct{} // closed when a shutdown begins

	shutdown sync.Once
	err      error // of the shutdown
}

// Launch starts the workers of some settings in this process, each after its pause, and registers each as soon as it can
// serve. ctx bounds the launch alone. With an error nothing is left behind: no record, socket or goroutine.
//
// Transports and discovery read the environment of the process, as the program does. Settings of a screen, a report or an
// end of the run have no effect. log gets what the program writes to stderr; nil is nothing.
func Launch(ctx context.Context, s *settings.Settings, log io.Writer) (*Workers, error) {
	if s.Load != nil {
		return nil, &engine.SettingError{Setting: "--profile", Kind: engine.KindConflict, Given: s.Profile,
			Allowed: "has a built-in load, for which no worker is registered; give --discovery-backend"}
	}
	own := *s
	own.Record, own.Report = "", ""
	if err := own.LoadTiming(); err != nil {
		return nil, err
	}
	if log == nil {
		log = io.Discard
	}
	filter, _ := logs.ParseFilter(os.Getenv("DYN_LOG"))
	p := &program{s: &own, log: logs.New(logs.Options{Filter: filter, JSON: jsonLog()}, log)}
	w := &Workers{s: p.newServing(), over: make(chan struct{})}
	if err := w.s.start(ctx); err != nil {
		p.log.Flush()
		return nil, err
	}
	w.failed = w.s.fleet.failed(context.Background()) // until the workers are closed
	return w, nil
}

// Addr is where the request plane listens, such as "192.0.2.10:41234".
func (w *Workers) Addr() string { return w.s.server.Addr() }

// Model is the name of the model in the workers' cards.
func (w *Workers) Model() string { return w.s.name() }

// Live returns the workers by their number, to look into their engines or to hand them requests without a frontend.
func (w *Workers) Live() []*live.Worker { return slices.Clone(w.s.fleet.workers) }

// Wait waits until a worker fails, or discovery loses one for good, and returns that error. It returns nil when the
// workers are shut down or ctx ends.
func (w *Workers) Wait(ctx context.Context) error {
	select {
	case err := <-w.failed:
		return err
	case err := <-w.s.lost:
		return err
	case <-w.over:
	case <-ctx.Done():
	}
	return nil
}

// Shutdown takes all workers out of discovery, waits for the requests in flight until ctx or the grace period of
// DYN_RUNTIME_GRACEFUL_SHUTDOWN_TIMEOUT_SECS ends, cuts the rest off and closes everything. All of that is done whatever
// fails; the errors are joined. Later calls wait for the first one and return the same.
func (w *Workers) Shutdown(ctx context.Context) error {
	w.shutdown.Do(func() {
		close(w.over)
		ctx, stop := context.WithTimeout(ctx, w.s.env.DrainLimit)
		defer stop()
		err := w.s.drainAll(ctx)
		w.s.closing.Do(func() { err = errors.Join(err, w.s.takeBack()) })
		w.s.p.log.Flush()
		w.err = err
	})
	return w.err
}
