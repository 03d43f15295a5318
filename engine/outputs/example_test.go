package outputs_test

import (
	"fmt"
	"math"
	"testing"

	"mockbench/engine/outputs"
)

func ExampleReasoning() {
	r := outputs.Reasoning{Start: 128_001, End: 128_002, Ratio: 0.25}
	span := r.Span(20)
	fmt.Println("of 20 tokens", span, "are reasoning and", 20-span, "answer")
	for k := range 6 {
		if id, ok := r.Boundary(k, span); ok {
			fmt.Println("token", k, "is", id)
		}
	}
	fmt.Println((&outputs.Reasoning{Ratio: 1.5}).Validate())

	_, _, err := outputs.ParseReasoning(`{"start_thinking_token_id": -1, "end_thinking_token_id": 2, "thinking_ratio": 0.5}`)
	fmt.Println(err)
	// Output:
	// of 20 tokens 5 are reasoning and 15 answer
	// token 0 is 128001
	// token 4 is 128002
	// reasoning: got thinking_ratio 1.5, must be between 0 and 1
	// reasoning: got start_thinking_token_id -1, must be a number that fits
}

func TestReasoningRatio(t *testing.T) {
	for _, ratio := range []float64{0, 0.5, 1} {
		if err := (&outputs.Reasoning{Ratio: ratio}).Validate(); err != nil {
			t.Errorf("%v: %v", ratio, err)
		}
	}
	for _, ratio := range []float64{-0.1, 1.5, math.NaN(), math.Inf(1)} {
		if err := (&outputs.Reasoning{Ratio: ratio}).Validate(); err == nil {
			t.Errorf("%v is accepted", ratio)
		}
	}
	for _, text := range []string{
		`{"start_thinking_token_id": 4294967296, "end_thinking_token_id": 2, "thinking_ratio": 0.5}`,
		`{"start_thinking_token_id": 1.5, "end_thinking_token_id": 2, "thinking_ratio": 0.5}`,
		`{"start_thinking_token_id": "1", "end_thinking_token_id": 2, "thinking_ratio": 0.5}`,
	} {
		if _, _, err := outputs.ParseReasoning(text); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
	whole, _, err := outputs.ParseReasoning(`{"start_thinking_token_id": 4294967295, "end_thinking_token_id": 2, "thinking_ratio": 1}`)
	if err != nil || whole.Start != math.MaxUint32 || whole.Ratio != 1 {
		t.Errorf("got %v, %v", whole, err)
	}
}
