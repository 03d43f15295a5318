package aisdata

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// index is a package index with one wheel.
type index struct {
	*httptest.Server
	wheel  []byte
	hash   string
	json   bool
	cut    int // bytes after which a download breaks off; 0 = never
	ranges []string
}

const wheelName = "aiconfigurator_core-0.12.0-cp311-abi3-any.whl"

func newIndex(t *testing.T) *index {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range []string{"aiconfigurator_core/systems/query_versions.yaml", "aiconfigurator_core/systems/data/x/a.parquet",
		"aiconfigurator_core/secret.py", "aiconfigurator_core/systems/code.py", "aiconfigurator_core-0.12.0.dist-info/METADATA"} {
		w, err := z.Create(name)
		if err == nil {
			_, err = fmt.Fprintf(w, "%s %s\n", name, strings.Repeat("x", 5000))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	x := &index{wheel: b.Bytes(), hash: fmt.Sprintf("%x", sha256.Sum256(b.Bytes()))}
	x.Server = httptest.NewServer(x)
	t.Cleanup(x.Close)
	return x
}

func (x *index) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/files/"+wheelName:
		x.ranges = append(x.ranges, r.Header.Get("Range"))
		if x.cut > 0 {
			w.Header().Set("Content-Length", fmt.Sprint(len(x.wheel)))
			w.Write(x.wheel[:x.cut])
			x.cut = 0
			return // the server closes the connection, since the length does not fit
		}
		http.ServeContent(w, r, wheelName, time.Time{}, bytes.NewReader(x.wheel))
	case r.URL.Path != "/simple/aiconfigurator-core/":
		http.NotFound(w, r)
	case x.json:
		w.Header().Set("Content-Type", "application/vnd.pypi.simple.v1+json")
		fmt.Fprintf(w, `{"files":[{"filename":%q,"url":"../../files/%s","hashes":{"sha256":%q}}]}`, wheelName, wheelName, x.hash)
	default:
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<html><body><a href="../../files/%s#sha256=%s">%s</a></body></html>`, wheelName, x.hash, wheelName)
	}
}

func (x *index) options(dir string) FetchOptions {
	return FetchOptions{Index: x.URL + "/simple/", Dir: dir}
}

func TestFetchUnpacksDataAlone(t *testing.T) {
	for _, json := range []bool{false, true} {
		x := newIndex(t)
		x.json = json
		dir, err := Fetch(context.Background(), x.options(t.TempDir()))
		if err != nil {
			t.Fatal(err)
		}
		r, err := Open(dir)
		if err != nil || r.Version != "0.12.0" {
			t.Fatalf("got %v, %v", r, err)
		}
		var files []string
		filepath.WalkDir(filepath.Dir(dir), func(p string, d os.DirEntry, _ error) error {
			if !d.IsDir() {
				files = append(files, filepath.Base(p))
			}
			return nil
		})
		if got := strings.Join(files, " "); got != "a.parquet query_versions.yaml METADATA" && got != "METADATA a.parquet query_versions.yaml" {
			t.Errorf("got %s", got)
		}
		before := len(x.ranges)
		if _, err := Fetch(context.Background(), x.options(filepath.Dir(dir))); err != nil || len(x.ranges) != before {
			t.Errorf("fetched again: %v", err)
		}
	}
}

func TestFetchGoesOnAfterAnInterruption(t *testing.T) {
	x, dir := newIndex(t), t.TempDir()
	x.cut = len(x.wheel) / 2
	if _, err := Fetch(context.Background(), x.options(dir)); err == nil || !strings.Contains(err.Error(), "goes on from there") {
		t.Fatalf("got %v", err)
	}
	if _, err := Fetch(context.Background(), x.options(dir)); err != nil {
		t.Fatal(err)
	}
	if last := x.ranges[len(x.ranges)-1]; last != fmt.Sprintf("bytes=%d-", len(x.wheel)/2) {
		t.Errorf("second request asked for %q", last)
	}
}

func TestFetchRefusesWrongContent(t *testing.T) {
	x, dir := newIndex(t), t.TempDir()
	x.hash = strings.Repeat("0", 64)
	if _, err := Fetch(context.Background(), x.options(dir)); err == nil || !strings.Contains(err.Error(), "SHA-256") {
		t.Fatalf("got %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestFetchWithoutNetwork(t *testing.T) {
	x := newIndex(t)
	x.Close()
	if _, err := Fetch(context.Background(), x.options(t.TempDir())); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}
