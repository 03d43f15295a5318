package interop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const readerScript = "testdata/wire_reader.py"

// wireEvent is a KV event as the independent reader understood it.
type wireEvent struct {
	Type      string
	Hashes    []uint64 `json:"block_hashes"`
	Parent    *uint64  `json:"parent_block_hash"`
	Tokens    []uint32 `json:"token_ids"`
	BlockSize int      `json:"block_size"`
	Medium    *string
	Group     *int `json:"group_idx"`
}

type wireBatch struct {
	TS     float64
	Rank   int
	Events []wireEvent
	Keys   [][]string // of each event, in the order of the bytes
}

// numbered is a batch as it came from a socket.
type numbered struct {
	Seq     uint64
	Payload string
	Decoded wireBatch
}

// replayed is the answer to a request for earlier batches.
type replayed struct {
	Batches []numbered
	Ended   bool
}

// wireRank is what the reader saw of one rank.
type wireRank struct {
	Live            []numbered
	All, Half, None replayed
}

// decodeWire lets the reader decode batches.
func decodeWire(t *testing.T, hex []string) (list []wireBatch) {
	t.Helper()
	command := exec.Command(python, readerScript, "decode")
	command.Stdin = strings.NewReader(strings.Join(hex, "\n"))
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.Output()
	if err == nil {
		err = json.Unmarshal(out, &list)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	return list
}

// follow starts the reader, runs a load once it is subscribed, and returns what it read of each rank.
func follow(t *testing.T, pairs []string, load func()) (ranks []wireRank) {
	t.Helper()
	command := exec.Command(python, append([]string{readerScript, "follow"}, pairs...)...)
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	command.Stderr = &said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	if line, err := r.ReadString('\n'); line == "ready\n" {
		time.Sleep(300 * time.Millisecond) // the subscription follows the handshake
		load()
		fmt.Fprintln(in, "ask")
	} else {
		t.Errorf("the reader says %q: %v", line, err)
	}
	text, err := io.ReadAll(r)
	if err = firstError(err, command.Wait()); err == nil {
		err = json.Unmarshal(text, &ranks)
	}
	if err != nil {
		t.Fatalf("the reader: %v\n%s", err, said.String())
	}
	return ranks
}

func firstError(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}

// adjacentPorts returns the first of n free ports in a row.
func adjacentPorts(t *testing.T, n int) int {
	t.Helper()
next:
	for range 100 {
		first := steadyPort(t)
		for port := first; port < first+n; port++ {
			l, err := net.Listen("tcp", fmt.Sprintf("0.0.0.0:%d", port))
			if err != nil {
				continue next
			}
			l.Close()
		}
		return first
	}
	t.Fatalf("no %d free ports in a row", n)
	return 0
}

// TestVLLMWireForAnIndependentReader has the wires of four ranks read by pyzmq and msgspec, as consumers of vLLM do, and
// compares what they understand with recordings of the real mocker, with the frontend's word on each request and with
// the report of the run.
func TestVLLMWireForAnIndependentReader(t *testing.T) {
	const workers, ranks, blocks, blockSize = 2, 2, 64, 16
	c := newCluster(t)
	c.frontend("--router-mode", "kv")
	port := adjacentPorts(t, 2*workers*ranks)
	list := func(first int) string { return fmt.Sprintf("%d,%d", first, first+ranks) }
	report := filepath.Join(t.TempDir(), "report.json")
	p := c.ours("--num-workers", fmt.Sprint(workers), "--data-parallel-size", fmt.Sprint(ranks), "--speedup-ratio", "100",
		"--num-gpu-blocks-override", fmt.Sprint(blocks), "--block-size", fmt.Sprint(blockSize), "--report", report,
		"--zmq-kv-events-ports", list(port), "--zmq-replay-ports", list(port+workers*ranks))
	c.serving(workers)
	var pairs []string
	for rank := range workers * ranks {
		pairs = append(pairs, fmt.Sprintf("127.0.0.1:%d,127.0.0.1:%d", port+rank, port+workers*ranks+rank))
	}
	var mu sync.Mutex
	full := 0 // blocks that the requests filled
	seen := follow(t, pairs, func() {
		var clients sync.WaitGroup
		for client := range 4 {
			clients.Go(func() {
				for i := range 20 {
					u := c.mustChat(strings.Repeat(fmt.Sprintf("river %d of %d ", i/2, client), 12), 24).usage
					mu.Lock()
					full += (u.Prompt + u.Completion) / blockSize
					mu.Unlock()
				}
			})
		}
		clients.Wait()
	})
	if _, status := p.stop(20 * time.Second); status != 0 {
		t.Errorf("exit status %d", status)
	}
	forms := recordedForms(t)
	stored := 0
	for i, rank := range seen {
		check := wireCheck{T: t, rank: i % ranks, resident: map[uint64]bool{}, forms: forms, blockSize: blockSize}
		check.numbers(&rank)
		for _, batch := range rank.Live {
			check.batch(&batch.Decoded)
		}
		if len(check.resident) > blocks || check.removed == 0 {
			t.Errorf("wire %d: %d blocks are resident and %d were removed, the pool has %d", i, len(check.resident), check.removed, blocks)
		}
		stored += check.stored
	}
	reused, preempted := reusedBlocks(t, report, blockSize)
	t.Logf("%d blocks were filled, %d of them reused, %d stored, %d preemptions", full, reused, stored, preempted)
	if preempted == 0 && (stored+reused != full || reused == 0) {
		t.Errorf("%d blocks stored and %d reused, the requests filled %d", stored, reused, full)
	}
}

// recordedForms returns the keys of each type of event, in order, as the real mocker sends them.
func recordedForms(t *testing.T) map[string][]string {
	t.Helper()
	root := os.Getenv("MOCKBENCH_GOLDEN")
	if root == "" {
		root = filepath.Join("..", "testdata", "golden")
	}
	data, err := os.ReadFile(filepath.Join(root, "event-plane", "stream-wire.json"))
	if err != nil {
		t.Fatal(err)
	}
	var recording struct {
		Expect struct {
			Wire []struct {
				Frames []string `json:"frames_hex"`
			} `json:"vllm_wire"`
		}
	}
	if err := json.Unmarshal(data, &recording); err != nil {
		t.Fatal(err)
	}
	var payloads []string
	for _, m := range recording.Expect.Wire {
		payloads = append(payloads, m.Frames[2])
	}
	forms := map[string][]string{}
	for _, batch := range decodeWire(t, payloads) {
		for i, e := range batch.Events {
			forms[e.Type] = batch.Keys[i]
		}
	}
	if len(forms) < 2 {
		t.Fatalf("the recording has events of the types %v", forms)
	}
	return forms
}

// wireCheck follows the events of one rank.
type wireCheck struct {
	*testing.T
	rank, blockSize int
	forms           map[string][]string
	resident        map[uint64]bool
	stored, removed int     // blocks
	last            float64 // time of the latest batch
}

// numbers compares numbers and bytes of what was published with what is replayed.
func (c *wireCheck) numbers(r *wireRank) {
	c.Helper()
	for i, b := range r.Live {
		if b.Seq != uint64(i) {
			c.Fatalf("rank %d: batch %d has the number %d", c.rank, i, b.Seq)
		}
	}
	half := len(r.Live) / 2
	for name, part := range map[string]struct {
		got  replayed
		want []numbered
	}{"all": {r.All, r.Live}, "half": {r.Half, r.Live[half:]}, "none": {r.None, nil}} {
		same := func(a, b numbered) bool { return a.Seq == b.Seq && a.Payload == b.Payload }
		if !part.got.Ended || !slices.EqualFunc(part.got.Batches, part.want, same) {
			c.Errorf("rank %d, replay of %s: %d batches, ended %v, want the %d of before", c.rank, name, len(part.got.Batches), part.got.Ended, len(part.want))
		}
	}
}

func (c *wireCheck) batch(b *wireBatch) {
	c.Helper()
	if b.Rank != c.rank || b.TS < c.last || time.Since(time.Unix(int64(b.TS), 0)) > time.Hour {
		c.Errorf("rank %d: a batch of rank %d at %f, after %f", c.rank, b.Rank, b.TS, c.last)
	}
	c.last = b.TS
	for i, e := range b.Events {
		if want := c.forms[e.Type]; !slices.Equal(b.Keys[i], want) {
			c.Errorf("%s has the keys %q, recorded are %q", e.Type, b.Keys[i], want)
		}
		switch e.Type {
		case "BlockStored":
			c.store(&e)
		case "BlockRemoved":
			for _, h := range e.Hashes {
				if !c.resident[h] {
					c.Errorf("rank %d: block %x is removed that was not stored", c.rank, h)
				}
				delete(c.resident, h)
				c.removed++
			}
		}
	}
}

func (c *wireCheck) store(e *wireEvent) {
	c.Helper()
	if e.Parent != nil && !c.resident[*e.Parent] {
		c.Errorf("rank %d: the parent %x is not stored", c.rank, *e.Parent)
	}
	if e.BlockSize != c.blockSize || len(e.Tokens) != e.BlockSize*len(e.Hashes) || len(e.Hashes) == 0 {
		c.Errorf("rank %d: %d tokens in %d blocks of %d", c.rank, len(e.Tokens), len(e.Hashes), e.BlockSize)
	}
	for _, h := range e.Hashes {
		if c.resident[h] {
			c.Errorf("rank %d: block %x is stored twice", c.rank, h)
		}
		c.resident[h] = true
		c.stored++
	}
}

// reusedBlocks reads from a report how many blocks were found in caches, and the number of preemptions.
func reusedBlocks(t *testing.T, path string, blockSize int) (blocks, preemptions int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Summary struct {
			Input       int     `json:"total_input_tokens"`
			Reused      float64 `json:"first_admission_prefix_cache_reused_ratio"`
			Preemptions int     `json:"num_preemptions"`
			Completed   int     `json:"completed_requests"`
		}
	}
	if err := json.Unmarshal(data, &report); err != nil {
		t.Fatal(err)
	}
	if report.Summary.Completed == 0 {
		t.Error("the report knows no request")
	}
	return int(report.Summary.Reused*float64(report.Summary.Input)+0.5) / blockSize, report.Summary.Preemptions
}
