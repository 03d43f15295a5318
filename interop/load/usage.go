package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// usage is what a process has used so far.
type usage struct {
	cpu   float64 // seconds, user and system
	rssMB float64 // peak
}

// ticksPerSecond is the unit of the times in /proc, the same on all Linux platforms that Go supports.
const ticksPerSecond = 100

// usageOf reads the use of the given processes, and of this one under the name "load".
func usageOf(p pids) (map[string]usage, error) {
	all := map[string]usage{}
	for name, pid := range p {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			return nil, err
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		const userTime, systemTime = 11, 12 // counted behind the name
		if len(fields) <= systemTime {
			return nil, fmt.Errorf("process %s: cannot read its CPU time", pid)
		}
		user, _ := strconv.ParseFloat(fields[userTime], 64)
		system, _ := strconv.ParseFloat(fields[systemTime], 64)
		all[name] = usage{cpu: (user + system) / ticksPerSecond, rssMB: peakRSS(pid)}
	}
	var self syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &self); err != nil {
		return nil, err
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Nano()) / 1e9 }
	all["load"] = usage{cpu: seconds(self.Utime) + seconds(self.Stime)}
	return all, nil
}

func peakRSS(pid string) float64 {
	status, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		var kb float64
		if n, _ := fmt.Sscanf(line, "VmHWM: %f kB", &kb); n == 1 {
			return kb / 1024
		}
	}
	return 0
}
