package app

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"mockbench/engine/spawn"
)

// abandonLimit bounds taking records back before a process that is told to show its stacks ends.
const abandonLimit = time.Second

// watchQuit lets SIGQUIT, which shows all stacks and ends the process, leave no records behind. While the screen is
// shown, that has the signal.
func (s *serving) watchQuit() {
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGQUIT)
	spawn.Go("quit signal", func() {
		defer signal.Stop(got)
		for {
			select {
			case sig := <-got:
				if !s.p.shown.Load() {
					s.abandon()
					die(sig)
				}
			case <-s.closed:
				return
			}
		}
	})
}

// abandon takes the records of all workers back, as far as that is possible within the limit.
func (s *serving) abandon() {
	done := make(chan struct{})
	spawn.Go("abandon", func() {
		defer close(done)
		s.mu.Lock()
		registrations := s.registrations
		s.mu.Unlock()
		var all sync.WaitGroup
		for _, r := range registrations {
			all.Add(1)
			spawn.Go("withdraw", func() { defer all.Done(); _ = r.Withdraw() })
		}
		all.Wait()
	})
	select {
	case <-done:
	case <-time.After(abandonLimit):
	}
}
