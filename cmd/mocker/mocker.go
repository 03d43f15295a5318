// Package mocker is the program for other programs: workers in the process of a Go test, and replays. What its functions
// stand for in the Python package dynamo.mocker, and where the rest of that is, says docs/api.md.
//
// Settings come from arguments, as on the command line. Transports and discovery read the environment of the process, so
// that a test sets DYN_FILE_KV to a folder of its own, for example.
package mocker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"mockbench/cmd/mockbench/app"
	"mockbench/cmd/mockbench/flags"
	"mockbench/cmd/mockbench/settings"
	"mockbench/engine/spawn"
	"mockbench/profiles"
	"mockbench/transport/modelcard"
)

// ParseArgs checks arguments and returns the settings of a run; lookup is where environment variables come from, such as
// os.LookupEnv. Errors are one line: *flags.UsageError for arguments that cannot be read, else *engine.SettingError, or an
// error that wraps one of the file system, for a setting that is wrong. --help and --version are usage errors here.
func ParseArgs(argv []string, lookup func(string) (string, bool)) (*settings.Settings, error) {
	v, err := flags.Read(argv, lookup)
	if err != nil {
		return nil, err
	}
	if v.Exit != flags.ExitNone {
		return nil, &flags.UsageError{Text: "--help and --version describe the program and start nothing"}
	}
	s, err := settings.Resolve(v, lookup, settings.NoDemo)
	if err != nil {
		return nil, err
	}
	return s, settings.Refuse(v, s)
}

// Workers are workers of this process.
type Workers = app.Workers

// Launch starts the workers of some settings in this process and registers them; ctx bounds the launch alone. With an
// error nothing is left behind: no record, socket or goroutine. log gets the log of the program; nil is nothing.
func Launch(ctx context.Context, s *settings.Settings, log io.Writer) (*Workers, error) {
	return app.Launch(ctx, s, log)
}

// RuntimeConfig returns what the model card of a worker says of its engine: tokens a block, and the runtime configuration.
// Topology and bootstrap host come from the environment; the host is looked up only for a prefill worker with a bootstrap
// port. Errors are *engine.SettingError: an engine without limits, for which a card has no word, or a topology that is not
// there.
func RuntimeConfig(l *profiles.Launch) (blockSize int, r modelcard.Runtime, err error) {
	return app.RuntimeConfig(l)
}

// Runtime is something to shut down, such as *Workers.
type Runtime interface {
	Shutdown(ctx context.Context) error
}

// GracefulShutdown shuts all runtimes down at the same time and waits for them. One that fails does not keep the others;
// all errors are joined, in the order of the runtimes.
func GracefulShutdown(ctx context.Context, runtimes ...Runtime) error {
	errs := make([]error, len(runtimes))
	var running sync.WaitGroup
	for i, r := range runtimes {
		running.Add(1)
		spawn.Go(fmt.Sprint("shutdown ", i), func() {
			defer running.Done()
			errs[i] = r.Shutdown(ctx)
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// Run is a whole run of workers: it reads the arguments, launches, waits until ctx ends or a worker fails, and shuts
// down, with the grace period of the environment for requests in flight. The end of ctx is no error.
func Run(ctx context.Context, argv []string, log io.Writer) error {
	s, err := ParseArgs(argv, os.LookupEnv)
	if err != nil {
		return err
	}
	w, err := Launch(ctx, s, log)
	if err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return nil
		}
		return err
	}
	failure := w.Wait(ctx)
	return errors.Join(failure, w.Shutdown(context.WithoutCancel(ctx)))
}
