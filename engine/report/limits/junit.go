package limits

import (
	"encoding/xml"
	"io"
	"strconv"
)

// Run is what a JUnit file says of a run besides its limits.
type Run struct {
	Name    string  // "mockbench replay"
	Seconds float64 // of wall clock
	Failure string  // why the run itself did not end as it should; empty if it did
}

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Seconds  string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Seconds string        `xml:"time,attr,omitempty"`
	Failure *junitFailure `xml:"failure"`
	Error   *junitFailure `xml:"error"`
	Output  string        `xml:"system-out,omitempty"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
}

// WriteJUnit writes a run and its limits as a JUnit test suite: a case for the run, one for each limit.
func WriteJUnit(w io.Writer, run Run, outcomes []Outcome) error {
	seconds := strconv.FormatFloat(run.Seconds, 'f', 3, 64)
	s := junitSuite{Name: run.Name, Tests: 1 + len(outcomes), Seconds: seconds,
		Cases: []junitCase{{Class: run.Name, Name: "run", Seconds: seconds}}}
	if run.Failure != "" {
		s.Errors, s.Cases[0].Error = 1, &junitFailure{run.Failure, "run"}
	}
	for _, o := range outcomes {
		c := junitCase{Class: run.Name, Name: o.Expression}
		if o.OK {
			c.Output = o.Finding()
		} else {
			s.Failures++
			c.Failure = &junitFailure{o.Finding(), "limit"}
		}
		s.Cases = append(s.Cases, c)
	}
	data, err := xml.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, xml.Header+string(data)+"\n")
	return err
}
