package app

import (
	"context"
	"fmt"
	"os"
	"slices"

	"mockbench/cmd/mockbench/flags"
	"mockbench/cmd/mockbench/settings"
	"mockbench/engine"
	"mockbench/engine/spawn"
	"mockbench/transport/discovery"
	"mockbench/transport/discovery/etcd"
	"mockbench/transport/discovery/kube"
)

// Resolve returns the settings of a run. Workers that nobody else could find, and that no flag prepares for that, get the
// load of the demonstration.
func Resolve(v *flags.Values) (*settings.Settings, error) {
	bare := settings.Demo
	if !v.Get("--discovery-backend").Given() && choose(context.Background()).Backend == discovery.MemoryBackend {
		bare = settings.Alone
	}
	return settings.Resolve(v, os.LookupEnv, bare)
}

// choose picks the discovery backend of a run that was told none.
func choose(ctx context.Context) discovery.Choice {
	return discovery.Choose(os.Getenv("ETCD_ENDPOINTS"), etcd.DefaultEndpoint, func() bool { return etcd.Answers(ctx, etcd.DefaultEndpoint) })
}

// nobodyFinds is what there is to know of workers in the memory of the process.
const nobodyFinds = "no frontend can find these workers, which only this process knows: --discovery-backend file lets them serve, " +
	"--profile demo runs them under a load"

// openBackend opens the discovery backend that was asked for, else the one that suits, and says which and why.
func (s *serving) openBackend(ctx context.Context) error {
	planes := &s.p.s.Planes
	if !planes.DiscoveryGiven {
		choice := choose(ctx)
		planes.Discovery = choice.Backend
		text := "discovery " + choice.Backend + ", " + choice.Why
		s.p.logger("discovery").Info(text)
		s.figures.note(text)
	}
	backend, err := s.backend(ctx)
	if err != nil {
		return err // and no nil pointer in the interface
	}
	s.store = backend
	return s.families.Discovery(backend.Restored)
}

func (s *serving) backend(ctx context.Context) (discovery.Backend, error) {
	log := s.p.logger("discovery")
	switch name := s.p.s.Planes.Discovery; name {
	case discovery.MemoryBackend:
		s.warn([]string{nobodyFinds})
		return discovery.OpenMemory(), nil
	case discovery.FileBackend:
		if root, set := os.LookupEnv("DYN_FILE_KV"); set && root == "" {
			s.warn([]string{"DYN_FILE_KV is empty, which counts as unset; the folder is " + discovery.FileRoot(os.Getenv)})
		}
		return discovery.OpenFile(discovery.FileOptions{Root: discovery.FileRoot(os.Getenv),
			Log: func(format string, args ...any) { log.Warn(fmt.Sprintf(format, args...)) }})
	case discovery.EtcdBackend:
		o, warnings, err := etcd.FromEnvironment(os.Getenv)
		s.warn(warnings)
		if err != nil {
			return nil, err
		}
		o.Log, o.Reregister = log, s.p.reregister()
		return etcd.Open(ctx, o)
	case discovery.KubernetesBackend:
		if n := s.p.s.Workers; n > 1 {
			return nil, fmt.Errorf("%s: got %d, must be 1 with --discovery-backend kubernetes, where all workers of a pod would have the same id",
				s.p.s.WorkersFlag(), n)
		}
		pod, warnings, err := kube.PodFromEnvironment("", os.Getenv)
		s.warn(warnings)
		if err != nil {
			return nil, err
		}
		return kube.Open(ctx, kube.Options{Pod: pod, Log: log})
	default:
		return nil, &engine.SettingError{Setting: "DYN_DISCOVERY_BACKEND", Kind: engine.KindRange, Given: fmt.Sprintf("%q", name),
			Allowed: "must be kubernetes, etcd, file or mem"}
	}
}

func (s *serving) warn(texts []string) {
	for _, text := range texts {
		s.p.logger("config").Warn(text)
	}
}

// reregister reports whether a worker that discovery has lost comes back by itself. Without a screen the default is to
// end, as the reference does, so that a supervisor acts.
func (p *program) reregister() bool {
	if p.s.Planes.ReregisterGiven {
		return p.s.Planes.Reregister
	}
	return p.screen
}

// join makes room for one more worker in discovery. If the worker is lost there for good, the run ends.
func (s *serving) join(ctx context.Context, worker int) (discovery.Member, error) {
	m, err := s.store.Join(ctx)
	if err != nil {
		return m, fmt.Errorf("discovery of worker %d: %w", worker, err)
	}
	if m.Lost != nil {
		spawn.Go("loss of "+s.p.workerName(worker), func() {
			select {
			case err := <-m.Lost:
				s.lost <- err
			case <-s.closed:
			}
		})
	}
	return m, nil
}

// discoveryState is a word for the screen if discovery has lost a worker, now or before.
func (s *serving) discoveryState() string {
	if t, ok := s.store.(interface{ Away() int }); ok {
		if n := t.Away(); n > 0 {
			return fmt.Sprintf(" (%d not in discovery, trying again)", n)
		}
	}
	if n := s.store.Restored(); n > 0 {
		return fmt.Sprintf(" (%d restored in discovery)", n)
	}
	return ""
}

// note adds a line to the notes of the report.
func (f *figures) note(text string) { f.notes = append(slices.Clip(f.notes), text) }
