package interop

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

var faultRounds = flag.Int("fault-rounds", 1, "how often TestFaults repeats each fault")

// fault is something that happens to a deployment with one worker, and ends.
type fault struct {
	cluster *cluster
	worker  *process

	// happen lets it happen and end; what it returns finds out whether all is as before.
	happen func() (recovered func() bool)
}

// faults are made for a deployment each; the worker answers at a fifth of its speed, so that a request runs on.
var faults = map[string]func(t *testing.T) *fault{
	"etcd stopped for two lease times": func(t *testing.T) *fault { return etcdFault(t, "stopped") },
	"etcd hung for two lease times":    func(t *testing.T) *fault { return etcdFault(t, "hung") },
	"NATS server restarted":            natsFault,
	"frontend killed and restarted":    frontendFault,
	"discovery folder wiped":           folderFault,
	"frontend stopped for 3 s":         subscriberFault,
}

// TestFaults lets every fault happen while a request runs, and measures from the end of the fault how long it takes until
// all is as before.
func TestFaults(t *testing.T) {
	names := make([]string, 0, len(faults))
	for name := range faults {
		names = append(names, name)
	}
	slices.Sort(names)
	var table strings.Builder
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			f := faults[name](t)
			var took []time.Duration
			fate := map[string]int{}
			for range *faultRounds {
				ended := f.cluster.begin("a long story", longTokens)
				recovered := f.happen()
				took = append(took, f.cluster.eventually(90*time.Second, "all is as before", recovered))
				o := <-ended
				fate[o.fate(longTokens)]++
			}
			if _, status := f.worker.stop(60 * time.Second); status != 0 {
				t.Errorf("exit status %d", status)
			}
			slices.Sort(took)
			fmt.Fprintf(&table, "| %s | %s | %.2f / %.2f / %.2f s |\n", name, fates(fate), took[0].Seconds(), took[len(took)/2].Seconds(),
				took[len(took)-1].Seconds())
		})
	}
	t.Logf("\n| fault | a running request | recovery, min / median / max of %d |\n|---|---|---|\n%s", *faultRounds, table.String())
}

func fates(count map[string]int) string {
	var list []string
	for fate := range count {
		list = append(list, fate)
	}
	slices.Sort(list)
	return strings.Join(list, " or ")
}

// fate says what became of a request that ran during a fault.
func (o *outcome) fate(n int) string {
	switch {
	case o.complete(n):
		return "is answered in full"
	case o.errored:
		return "ends with an error event"
	}
	return "breaks off"
}

// A worker at this speed takes about 8 s for an answer of this length.
const (
	slow       = "0.2"
	longTokens = 250
)

// answers reports whether a request is answered now.
func (c *cluster) answers() bool {
	ctx, cancel := context.WithTimeout(c.t.Context(), 15*time.Second)
	defer cancel()
	a, err := c.ask(ctx, "/v1/chat/completions", chat("again", 1), nil)
	return err == nil && a.status == 200 && !a.errored
}

func etcdFault(t *testing.T, kind string) *fault {
	e := etcdCluster(t)
	e.patient()
	worker := e.ours("--speedup-ratio", slow, "--reregister")
	e.up(1)
	return &fault{e.cluster, worker, func() func() bool {
		outages[kind].begin(e)
		time.Sleep(2 * leaseTTL)
		again := strings.Count(worker.log.String(), "registered again")
		outages[kind].end(e)
		return func() bool {
			return strings.Count(worker.log.String(), "registered again") > again && len(e.instances()) == 1 && e.listed() && e.answers()
		}
	}}
}

func natsFault(t *testing.T) *fault {
	c, b := natsCluster(t, "nats")
	port := portOf(t, b)
	c.frontend("--router-mode", "kv")
	worker := c.ours("--speedup-ratio", slow)
	c.serving(1)
	return &fault{c, worker, func() func() bool {
		b.Close()
		time.Sleep(time.Second)
		b = broker(t, port)
		return c.answers
	}}
}

func frontendFault(t *testing.T) *fault {
	c := newCluster(t)
	frontend := c.frontend("--router-mode", "kv")
	worker := c.ours("--speedup-ratio", slow)
	c.serving(1)
	return &fault{c, worker, func() func() bool {
		frontend.kill()
		frontend = c.frontend("--router-mode", "kv")
		return func() bool { return c.listed() && c.answers() }
	}}
}

func folderFault(t *testing.T) *fault {
	c := newCluster(t)
	c.frontend("--router-mode", "kv")
	worker := c.ours("--speedup-ratio", slow)
	c.serving(1)
	all := len(c.records("*", ""))
	return &fault{c, worker, func() func() bool {
		for _, file := range c.records("*", "") {
			if err := os.Remove(file); err != nil {
				t.Error(err)
			}
		}
		c.eventually(5*time.Second, "the model is unlisted", func() bool { return !c.listed() })
		return func() bool { return len(c.records("*", "")) == all && c.listed() && c.answers() }
	}}
}

// subscriberFault stops one of two frontends, whose router then misses what the other's clients do.
func subscriberFault(t *testing.T) *fault {
	c := newCluster(t)
	c.frontend("--router-mode", "kv")
	worker := c.ours("--speedup-ratio", slow)
	c.serving(1)
	other := *c
	stopped := other.frontend("--router-mode", "kv")
	other.serving(1)
	round := 0
	return &fault{c, worker, func() func() bool {
		round++
		var prompts []string // each is asked once of either frontend: asking makes a prompt known
		stopped.signal(syscall.SIGSTOP)
		for begin := time.Now(); time.Since(begin) < 3*time.Second; time.Sleep(200 * time.Millisecond) {
			prompts = append(prompts, strings.Repeat(fmt.Sprintf("%d of %d while nobody listens ", len(prompts), round), 40))
			c.mustExplain(explained(prompts[len(prompts)-1], 1))
		}
		stopped.signal(syscall.SIGCONT)
		return func() bool {
			if len(prompts) == 0 {
				t.Fatal("the router that was stopped never learned of what it missed")
			}
			next := prompts[0]
			prompts = prompts[1:]
			return other.mustExplain(explained(next, 1)).hitRate > 0.5
		}
	}}
}
