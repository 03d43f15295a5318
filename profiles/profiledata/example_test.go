package profiledata_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"mockbench/engine/timing"
	"mockbench/profiles/profiledata"
)

func ExampleResolve() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file, err := os.Create(filepath.Join(dir, "h100.npz"))
	if err != nil {
		fmt.Println(err)
		return
	}
	err = profiledata.WriteNPZ(file, &timing.Table{PrefillTokens: []float64{100, 200}, PrefillMS: []float64{10, 20},
		ActiveTokens: []float64{0, 1000}, Context: []float64{1, 1000}, DecodeMS: []float64{1, 2, 3, 4}, DecodeShape: [2]int{2, 2}})
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	data, err := profiledata.Resolve(file.Name())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer data.Close()
	model, err := profiledata.Load(data.Path)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("150 tokens:", model.Prefill(1, 150, 0), "ms")
	fmt.Println(data.Close(), data.Close())

	_, err = profiledata.Resolve("h100.csv")
	fmt.Println(err)
	// Output:
	// 150 tokens: 15 ms
	// <nil> <nil>
	// --planner-profile-data: got "h100.csv", must be an NPZ file, or a directory with prefill and decode data as NPZ or as JSON: no such file or directory
}

func TestResolve(t *testing.T) {
	none, err := profiledata.Resolve("")
	if err != nil || none == nil || none.Path != "" {
		t.Errorf("no path: got %v, %v", none, err)
	}
	if err := (*profiledata.ProfileData)(nil).Close(); err != nil {
		t.Errorf("nothing to close: got %v", err)
	}
	half := t.TempDir()
	if err := os.WriteFile(filepath.Join(half, "prefill_raw_data.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{half, filepath.Join(half, "prefill_raw_data.json"), filepath.Join(half, "none.npz")} {
		if d, err := profiledata.Resolve(path); err == nil || d != nil {
			t.Errorf("%s: got %v, %v", path, d, err)
		}
	}
}
