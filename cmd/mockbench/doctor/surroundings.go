package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"mockbench/cmd/mockbench/settings"
	"mockbench/transport/discovery"
	"mockbench/transport/discovery/etcd"
	"mockbench/transport/discovery/kube"
	"mockbench/transport/modelcard"
)

// patience is how long a server may take to answer.
const patience = 3 * time.Second

// environment names the variables that are set and matter.
func (r *Report) environment(environ []string) {
	slices.Sort(environ)
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		ours := slices.ContainsFunc([]string{"DYN_", "ETCD_", "NATS_", "HF_", "POD_", "MOCKBENCH_"}, func(p string) bool { return strings.HasPrefix(name, p) })
		switch {
		case !ours:
		case value == "" && (name == "DYN_NAMESPACE" || name == "DYN_FILE_KV"):
			r.add(Warning, name, "unset it",
				"is set and empty: counts as unset here, and is taken literally by the reference")
		case slices.ContainsFunc([]string{"PASSWORD", "TOKEN", "NKEY", "SECRET"}, func(w string) bool { return strings.Contains(name, w) }):
			r.add(Note, name, "", "is set")
		default:
			if u, err := url.Parse(value); err == nil && u.User != nil {
				value = u.Redacted()
			}
			r.add(Note, name, "", "%s", value)
		}
	}
}

// openDiscovery finds the backend that a run would choose and reads its records, if it can be opened.
func (r *Report) openDiscovery(ctx context.Context, s *settings.Settings) (list []Record, opened bool) {
	name, why := s.Planes.Discovery, "as was asked for"
	switch {
	case s.Load != nil:
		r.add(Note, "discovery", "give --discovery-backend to serve a frontend",
			"a built-in load asks for no frontend, nothing is registered")
		return nil, false
	case !s.Planes.DiscoveryGiven:
		choice := discovery.Choose(os.Getenv("ETCD_ENDPOINTS"), etcd.DefaultEndpoint, func() bool { return etcd.Answers(ctx, etcd.DefaultEndpoint) })
		name, why = choice.Backend, choice.Why
	}
	switch name {
	case discovery.MemoryBackend:
		r.add(Warning, "discovery", "give --discovery-backend file, with the same DYN_FILE_KV as the frontend",
			"mem, %s: only this process sees the workers", why)
		return nil, false
	case discovery.FileBackend:
		return r.readFolder(discovery.FileRoot(os.Getenv), why), true
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	backend, where, err := connect(ctx, name)
	if err != nil {
		r.add(Problem, "discovery", "start the server or correct "+where, "%s, %s: %v", name, why, err)
		return nil, false
	}
	defer backend.Close(context.Background())
	r.add(OK, "discovery", "", "%s, %s", backend, why)
	for _, bucket := range discovery.Buckets {
		values, err := backend.List(ctx, bucket)
		if err != nil {
			r.add(Problem, "discovery", "", "%v", err)
		}
		for path, text := range values {
			list = append(list, Record{Bucket: bucket, Path: path, Text: text})
		}
	}
	return list, true
}

// connect opens a backend on the network; where names the variable that leads to it.
func connect(ctx context.Context, name string) (b discovery.Backend, where string, err error) {
	switch name {
	case discovery.EtcdBackend:
		o, _, err := etcd.FromEnvironment(os.Getenv)
		if err != nil {
			return nil, "ETCD_ENDPOINTS", err
		}
		b, err := etcd.Open(ctx, o)
		if err != nil {
			return nil, "ETCD_ENDPOINTS", err
		}
		return b, "", nil
	case discovery.KubernetesBackend:
		pod, _, err := kube.PodFromEnvironment("", os.Getenv)
		if err != nil {
			return nil, "POD_NAME", err
		}
		b, err := kube.Open(ctx, kube.Options{Pod: pod})
		if err != nil {
			return nil, "the cluster's address", err
		}
		return b, "", nil
	}
	return nil, "DYN_DISCOVERY_BACKEND", fmt.Errorf("unknown backend %q, must be kubernetes, etcd, file or mem", name)
}

// readFolder reads the folder of the file backend and changes nothing in it.
func (r *Report) readFolder(root, why string) (list []Record) {
	if _, err := os.Stat(root); err != nil {
		r.add(Note, "discovery", "check that the frontend has the same DYN_FILE_KV",
			"file, %s: the folder %s is not there yet, nobody uses it", why, root)
		return nil
	}
	r.add(OK, "discovery", "", "file %s, %s", root, why)
	for _, bucket := range discovery.Buckets {
		dir := filepath.Join(root, filepath.FromSlash(bucket))
		entries, err := os.ReadDir(dir)
		if err != nil && !os.IsNotExist(err) {
			r.add(Problem, "discovery", "make it readable", "%v", err)
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".tmp_") {
				continue
			}
			info, err := e.Info()
			if err != nil || !info.Mode().IsRegular() {
				r.add(Warning, filepath.Join(dir, e.Name()), "remove it", "only plain files belong here")
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				r.add(Problem, filepath.Join(dir, e.Name()), "make it readable", "%v", err)
				continue
			}
			path, err := url.PathUnescape(e.Name())
			if err != nil {
				path = e.Name()
			}
			list = append(list, Record{Bucket: bucket, Path: path, Text: text, Age: time.Since(info.ModTime())})
		}
	}
	return list
}

// reachable checks that somebody listens where records point.
func (r *Report) reachable(records []Record) {
	tried := map[string]bool{}
	for i := range records {
		var b body
		if json.Unmarshal(records[i].Text, &b) != nil || records[i].Age > lease {
			continue
		}
		for _, address := range b.addresses() {
			if tried[address] {
				continue
			}
			tried[address] = true
			if host, _, _ := net.SplitHostPort(address); net.ParseIP(host).IsLoopback() {
				r.add(Note, records[i].name(),
					"set DYN_TCP_RPC_HOST or DYN_EVENT_PLANE_HOST if frontends run elsewhere",
					"is at %s, which only processes of this machine reach", address)
			}
			c, err := net.DialTimeout("tcp", address, time.Second)
			if err != nil {
				r.add(Problem, records[i].name(),
					"if the process has gone, the record goes away by itself; else look at the network between",
					"nobody answers at %s: %v", address, err)
				continue
			}
			c.Close()
		}
	}
}

// files checks that the files a card names are what it says, where they lie here, and that copies which frontends keep
// are not damaged: those are never fetched again.
func (r *Report) files(subject string, card []byte, cache string) {
	var v any
	if json.Unmarshal(card, &v) != nil {
		return
	}
	var walk func(v any)
	walk = func(v any) {
		object, ok := v.(map[string]any)
		if list, isList := v.([]any); isList {
			for _, inner := range list {
				walk(inner)
			}
		}
		if !ok {
			return
		}
		path, hasPath := object["path"].(string)
		sum, hasSum := object["checksum"].(string)
		if hasPath && hasSum {
			r.file(subject, path, sum, cache)
			return
		}
		for _, key := range sortedKeys(object) {
			walk(object[key])
		}
	}
	walk(v)
}

func (r *Report) file(subject, path, sum, cache string) {
	if filepath.IsAbs(path) {
		switch got, err := checksum(path); {
		case err != nil:
			r.add(Problem, subject,
				"frontends on other machines need the folder, or DYN_SYSTEM_PORT at the worker, which then offers the files", "its card names a file that cannot be read here: %v", err)
		case got != sum:
			r.add(Problem, subject, "restart the worker",
				"%s has changed since the worker was started: frontends refuse the file and do not list the model", path)
		}
	}
	blob := filepath.Join(cache, strings.TrimPrefix(sum, "blake3:"))
	if got, err := checksum(blob); err == nil && got != sum {
		r.add(Problem, subject, "delete "+blob,
			"the copy of %s that frontends of this user keep is damaged: they never fetch it again and do not list the model", filepath.Base(path))
	}
}

func checksum(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	sum, _, err := modelcard.Checksum(bytes.NewReader(data))
	return sum, err
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// ports checks that ports which a run would open are free.
func (r *Report) ports(s *settings.Settings) {
	try := func(name string, port int64) {
		if port <= 0 || port > 65535 {
			return
		}
		l, err := net.Listen("tcp", net.JoinHostPort("", strconv.FormatInt(port, 10)))
		if err != nil {
			r.add(Problem, name, "stop the program that has it or choose another port",
				"port %d is in use: %v", port, err)
			return
		}
		l.Close()
		r.add(OK, name, "", "port %d is free", port)
	}
	for _, list := range []struct {
		name  string
		ports []int64
	}{{"--bootstrap-ports", s.Ports.Bootstrap}, {"--zmq-kv-events-ports", s.Ports.ZMQEvents}, {"--zmq-replay-ports", s.Ports.ZMQReplay}} {
		for _, base := range list.ports {
			ranks := int64(1)
			if list.name != "--bootstrap-ports" && base > 0 {
				ranks = int64(s.Launch.DPSize)
			}
			for rank := range ranks {
				try(list.name, base+rank)
			}
		}
	}
	for _, name := range []string{"DYN_TCP_RPC_PORT", "DYN_SYSTEM_PORT"} {
		if port, err := strconv.ParseInt(os.Getenv(name), 10, 32); err == nil {
			try(name, port)
		}
	}
}
