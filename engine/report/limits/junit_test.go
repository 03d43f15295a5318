package limits

import (
	"encoding/xml"
	"strings"
	"testing"
)

func TestJUnit(t *testing.T) {
	value := 310.5
	var b strings.Builder
	err := WriteJUnit(&b, Run{Name: "mockbench replay", Seconds: 1.5}, []Outcome{
		{Expression: "p99(ttft_ms) < 300", Actual: &value}, {Expression: "num_requests > 1", OK: true, Actual: &value}})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Cases    []struct {
			Name    string `xml:"name,attr"`
			Failure *struct {
				Message string `xml:"message,attr"`
			} `xml:"failure"`
			Error *struct{} `xml:"error"`
		} `xml:"testcase"`
	}
	if err := xml.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got.Tests != 3 || got.Failures != 1 || got.Errors != 0 || len(got.Cases) != 3 || got.Cases[0].Error != nil {
		t.Fatalf("%+v of\n%s", got, b.String())
	}
	if c := got.Cases[1]; c.Name != "p99(ttft_ms) < 300" || c.Failure == nil || c.Failure.Message != "310.5" || got.Cases[2].Failure != nil {
		t.Errorf("cases of\n%s", b.String())
	}
	b.Reset()
	if err := WriteJUnit(&b, Run{Name: "x", Failure: "ended by a signal"}, nil); err != nil || !strings.Contains(b.String(), `errors="1"`) ||
		!strings.Contains(b.String(), `<error message="ended by a signal"`) {
		t.Errorf("%v: %s", err, b.String())
	}
}
