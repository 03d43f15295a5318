package trace

import (
	"fmt"
	"math"
)

// applied reads a trace of agents that call tools, one session a line, without arrival times.
type applied struct {
	t      *Trace
	o      Options
	ids    interner
	unique uint64 // next id that nobody shares
}

type appliedRow struct {
	turns, prompt, final uint64
	answers, tools       []uint64
	latencies            []float64
}

func readApplied(path string, o Options) (*Trace, error) {
	in, err := openLines(path)
	if err != nil {
		return nil, err
	}
	defer in.close()
	a := &applied{t: &Trace{BlockSize: o.BlockSize}, o: o, ids: newInterner(), unique: 1}
	var scan scanner
	for {
		more, err := in.next()
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		scan.reset(in.text)
		row, err := readAppliedRow(&scan)
		if err != nil {
			return nil, in.wrong("not a session in JSON: %v", err)
		}
		if err := row.check(in); err != nil {
			return nil, err
		}
		a.add(row, in.number)
	}
	if len(a.t.Sessions) == 0 {
		return nil, fmt.Errorf("trace: %s holds no requests", path)
	}
	a.t.IDs = a.ids.len()
	a.t.plan()
	return a.t, a.t.check()
}

func readAppliedRow(s *scanner) (r appliedRow, err error) {
	const fields = "num_turns input_prompt_length assistant_response_length tool_call_output_length tool_call_latency final_assistant_response_length"
	seen := 0
	s.object(func(key []byte) {
		seen++
		switch string(key) {
		case "num_turns":
			r.turns = s.unsigned(math.MaxInt32)
		case "input_prompt_length":
			r.prompt = s.unsigned(math.MaxInt32)
		case "final_assistant_response_length":
			r.final = s.unsigned(math.MaxInt32)
		case "assistant_response_length":
			r.answers = s.ids(nil)
		case "tool_call_output_length":
			r.tools = s.ids(nil)
		case "tool_call_latency":
			s.array(func() { r.latencies = append(r.latencies, s.float()) })
		default:
			seen--
			s.skip()
		}
	})
	if err := s.end(); err != nil {
		return r, err
	}
	if seen != 6 {
		return r, fmt.Errorf("needs each of the fields %s once", fields)
	}
	return r, nil
}

func (r *appliedRow) check(in *lines) error {
	if r.prompt == 0 {
		return in.wrong("input_prompt_length must be positive")
	}
	for _, f := range []struct {
		name string
		n    int
	}{{"assistant_response_length", len(r.answers)}, {"tool_call_output_length", len(r.tools)}, {"tool_call_latency", len(r.latencies)}} {
		if uint64(f.n) != r.turns {
			return in.wrong("%s has %d elements, num_turns is %d", f.name, f.n, r.turns)
		}
	}
	total := r.prompt
	for i := range r.answers {
		if total += r.answers[i] + r.tools[i]; total > math.MaxInt32 || r.answers[i] > math.MaxInt32 || r.tools[i] > math.MaxInt32 {
			return in.wrong("prompts grow beyond %d tokens", math.MaxInt32)
		}
	}
	for i, x := range r.latencies {
		if !timeInMS(x) {
			return in.wrong("tool_call_latency[%d] must be finite and not negative, got %s", i, short(x))
		}
	}
	return nil
}

// add adds the session of a line. Its ids are one growing list, of which every turn takes what it needs.
func (a *applied) add(r appliedRow, line int) {
	size := a.t.BlockSize
	prefix := 0
	if a.o.PrefixGroups > 0 && a.o.PrefixRatio > 0 {
		prefix = int(math.Round(float64((int(r.prompt)+size-1)/size) * a.o.PrefixRatio))
	}
	group := uint64(0)
	if prefix > 0 {
		group = uint64((line - 1) % a.o.PrefixGroups)
	}
	s := Session{Name: fmt.Sprintf("applied_compute_agentic_session_%d", line), Named: true, Arrival: math.NaN()}
	var ids []uint32
	input := int(r.prompt)
	for k := range int(r.turns) + 1 {
		u := Turn{Output: int(r.final)}
		if k > 0 {
			input += int(r.answers[k-1] + r.tools[k-1])
			u.Delay = r.latencies[k-1] * 1000
		}
		if k < int(r.turns) {
			u.Output = int(r.answers[k])
		}
		for len(ids) < (input+size-1)/size {
			if b := len(ids); b < prefix {
				ids = append(ids, a.ids.number(0xA63E000000000000|group<<32|uint64(b)))
				continue
			}
			ids = append(ids, a.ids.number(a.unique))
			a.unique++
		}
		u.Input, u.IDs = input, ids[:len(ids):len(ids)]
		s.Turns = append(s.Turns, u)
	}
	a.t.Sessions = append(a.t.Sessions, s)
}
