package sweepcmd

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"mockbench/cmd/mockbench/flags"
)

// journal holds the rows of the runs that are done, one a line, in the order in which they ended. A row is there as a
// whole and on the disk before the run counts as done; a line that a killed process left unfinished is cut off.
type journal struct {
	file *os.File // nil without a journal
}

// journalHead is the first line of a journal.
type journalHead struct {
	Journal string `json:"journal"` // what the file is
	Sweep   string `json:"sweep"`   // digest of what the runs depend on
	Runs    int    `json:"runs"`
}

const journalName = "mockbench sweep 1"

// journalEntry is every other line.
type journalEntry struct {
	Run int             `json:"run"`
	Row json.RawMessage `json:"row"`
}

// digest identifies a sweep: the command line of each run, size and date of each file, the version of the program.
func digest(commands [][]string, files []string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, flags.ReferenceVersion)
	for _, c := range commands {
		fmt.Fprintf(h, "%q\n", c)
	}
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%q %d %d\n", path, info.Size(), info.ModTime().UnixNano())
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// openJournal opens or makes the journal of a sweep and returns the runs that are done. Only one process can have it.
func openJournal(path, sweep string, runs int) (*journal, map[int]*result, error) {
	done := map[int]*result{}
	if path == "" {
		return &journal{}, done, nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, nil, fmt.Errorf("--journal: %w", err)
	}
	j := &journal{f}
	if err := j.read(path, journalHead{journalName, sweep, runs}, done); err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("--journal: %w", err)
	}
	return j, done, nil
}

func (j *journal) read(path string, head journalHead, done map[int]*result) error {
	if !lock(j.file) {
		return fmt.Errorf("%s is in use by another process", path)
	}
	r := bufio.NewReader(j.file)
	var end int64 // of the last whole line
	for first := true; ; first = false {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			if first && len(line) > 0 && !bytes.HasPrefix([]byte(`{"journal":"`+journalName), line[:min(len(line), 12)]) {
				return fmt.Errorf("%s is no journal of a sweep", path)
			}
			break
		} else if err != nil {
			return err
		}
		if first {
			var h journalHead
			if json.Unmarshal(line, &h) != nil || h.Journal != journalName {
				return fmt.Errorf("%s is no journal of a sweep", path)
			}
			if h != head {
				return fmt.Errorf("%s belongs to another sweep: its runs, its traces or the program differ; "+
					"name another file or remove it", path)
			}
		} else if err := entry(line, done, head.Runs); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		end += int64(len(line))
	}
	if err := j.file.Truncate(end); err != nil {
		return err
	}
	if _, err := j.file.Seek(end, io.SeekStart); err != nil {
		return err
	}
	if end == 0 {
		return j.write(head)
	}
	return nil
}

func entry(line []byte, done map[int]*result, runs int) error {
	var e journalEntry
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	if e.Run < 0 || e.Run >= runs {
		return fmt.Errorf("there is no run %d", e.Run)
	}
	r, err := readResult(e.Run, e.Row)
	done[e.Run] = r
	return err
}

// add notes that a run is done.
func (j *journal) add(r *result) error {
	if j.file == nil {
		return nil
	}
	return j.write(journalEntry{r.run, r.text})
}

func (j *journal) write(line any) error {
	data, err := json.Marshal(line)
	if err != nil {
		return err
	}
	if _, err := j.file.Write(append(data, '\n')); err != nil {
		return err
	}
	return j.file.Sync()
}

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}
