package settings

import (
	"fmt"

	"mockbench/engine"
)

// CheckPorts refuses ports that two users of the process would share, and ports of ranks beyond the range.
func (s *Settings) CheckPorts() error {
	users := map[int64]string{}
	claim := func(flag string, worker, rank int, port int64) error {
		user := fmt.Sprintf("%s of worker %d rank %d", flag, worker, rank)
		if port == 0 {
			return nil // chosen by the system
		}
		if port > 65535 {
			return fmt.Errorf("%s: got port %d for worker %d rank %d, must be at most 65535", flag, port, worker, rank)
		}
		if other, taken := users[port]; taken {
			return conflict(flag, "port %d is used twice, by %s and by %s", port, other, user)
		}
		users[port] = user
		return nil
	}
	for _, list := range []struct {
		flag  string
		ports []int64
	}{{"--zmq-kv-events-ports", s.Ports.ZMQEvents}, {"--zmq-replay-ports", s.Ports.ZMQReplay}} {
		for w, base := range list.ports {
			for rank := range int(s.Launch.DPSize) {
				port := base
				if base != 0 {
					port += int64(rank)
				}
				if err := claim(list.flag, w, rank, port); err != nil {
					return err
				}
			}
		}
	}
	if s.Launch.Engine.Role == engine.PrefillRole {
		for w, port := range s.Ports.Bootstrap {
			if err := claim("--bootstrap-ports", w, 0, port); err != nil {
				return err
			}
		}
	}
	return nil
}
