package replaycmd

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"mockbench/engine"
	"mockbench/engine/replay"
	"mockbench/engine/report"
)

// samples is where telemetry goes. The file appears with the first sample and grows during the run.
type samples struct {
	path   string
	stdout io.Writer
	file   *os.File
	buffer *bufio.Writer
	keep   bool // for plots
	kept   []report.Fields
}

// openTelemetry asks the run for samples if the command line does.
func (j *job) openTelemetry(stdout io.Writer) *samples {
	s := &samples{path: j.a.telemetryJSONL, stdout: stdout, keep: j.a.html != ""}
	if s.path != "" || s.keep && j.a.given("telemetry-interval-ms") {
		j.options.Telemetry = &replay.Telemetry{Interval: engine.Time(j.a.telemetryInterval), Write: s.write}
	}
	return s
}

func (s *samples) write(f report.Fields) error {
	if s.keep {
		s.kept = append(s.kept, f)
	}
	if s.path == "" {
		return nil
	}
	if s.buffer == nil {
		out := s.stdout
		if s.path != "-" {
			file, err := os.Create(s.path)
			if err != nil {
				return fmt.Errorf("--telemetry-jsonl: %w", err)
			}
			s.file, out = file, file
		}
		s.buffer = bufio.NewWriter(out)
	}
	line, err := json.Marshal(f)
	if err != nil {
		return err
	}
	_, err = s.buffer.Write(append(line, '\n'))
	return err
}

func (s *samples) close() error {
	if s.buffer == nil {
		return nil
	}
	err := s.buffer.Flush()
	if s.file != nil {
		if failure := s.file.Close(); err == nil {
			err = failure
		}
	}
	return err
}
