package aisdata

import (
	"archive/zip"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// FetchOptions say where data comes from and where it goes. The zero value is complete.
type FetchOptions struct {
	Package  string // Released or Recorded; Released if it is not given
	Version  string // of the wheel
	Index    string // of packages, in the simple form; what pip or uv would use if it is not given
	Dir      string // folder that gets a folder for the version; the user's cache if it is not given
	Client   *http.Client
	Progress func(done, total int64) // bytes of the download; may be nil
}

// Fetch downloads the wheel with the data, checks its hash and unpacks the data alone. It returns the data's folder. An
// interrupted download goes on where it ended. Data that is there already is not fetched again.
func Fetch(ctx context.Context, o FetchOptions) (dir string, err error) {
	o.Package = cmp.Or(o.Package, Released)
	o.Version = cmp.Or(o.Version, DefaultVersion(o.Package))
	o.Index = cmp.Or(o.Index, os.Getenv("PIP_INDEX_URL"), os.Getenv("UV_DEFAULT_INDEX"), os.Getenv("UV_INDEX_URL"), defaultIndex)
	if o.Client == nil {
		o.Client = http.DefaultClient // which heeds HTTP_PROXY, HTTPS_PROXY and NO_PROXY
	}
	if o.Dir == "" {
		if o.Dir, err = cacheDir(); err != nil {
			return "", err
		}
	}
	dir = filepath.Join(o.Dir, o.Version)
	if _, err := Open(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return "", fmt.Errorf("AIS data: %w", err)
	}
	w, err := findWheel(ctx, o.Client, o.Index, o.Package, o.Version)
	if err != nil {
		return "", fmt.Errorf("AIS data: %w", err)
	}
	part := filepath.Join(o.Dir, "."+w.name+".part")
	if err := download(ctx, o, w, part); err != nil {
		return "", fmt.Errorf("AIS data: %s: %w", w.name, err)
	}
	if err := unpack(part, dir); err != nil {
		return "", fmt.Errorf("AIS data: %s: %w", w.name, err)
	}
	return dir, os.Remove(part)
}

// download brings a file up to its whole length and checks it. A file that is wrong is removed.
func download(ctx context.Context, o FetchOptions, w wheel, part string) error {
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	hash := sha256.New()
	have, err := io.Copy(hash, f)
	if err != nil {
		return err
	}
	if hex.EncodeToString(hash.Sum(nil)) == w.sha256 {
		return nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url, nil)
	if err != nil {
		return err
	}
	if have > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
	}
	response, err := o.Client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusPartialContent:
	case http.StatusOK, http.StatusRequestedRangeNotSatisfiable:
		if err := f.Truncate(0); err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			return errors.New("the part that was there does not fit the file on the server and was dropped, try again")
		}
		have = 0
		hash.Reset()
	default:
		return errors.New(response.Status)
	}
	if _, err := f.Seek(have, io.SeekStart); err != nil {
		return err
	}
	counted := &counter{report: o.Progress, done: have, total: have + response.ContentLength}
	if _, err := io.Copy(io.MultiWriter(f, hash, counted), response.Body); err != nil {
		return fmt.Errorf("download stopped after %d bytes, the next call goes on from there: %w", counted.done, err)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != w.sha256 {
		return errors.Join(fmt.Errorf("SHA-256 is %s, the index says %s", got, w.sha256), os.Remove(part))
	}
	return f.Close()
}

// counter reports how much has passed.
type counter struct {
	report      func(done, total int64)
	done, total int64
}

func (c *counter) Write(p []byte) (int, error) {
	c.done += int64(len(p))
	if c.report != nil {
		c.report(c.done, c.total)
	}
	return len(p), nil
}

// unpack writes the data of a wheel to a folder, which appears only when it is complete.
func unpack(file, dir string) error {
	z, err := zip.OpenReader(file)
	if err != nil {
		return err
	}
	defer z.Close()
	fresh, err := os.MkdirTemp(filepath.Dir(dir), ".unpack-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	for _, entry := range z.File {
		if wanted(entry.Name) {
			if err := extract(entry, fresh); err != nil {
				return err
			}
		}
	}
	if _, err := Open(fresh); err != nil {
		return err
	}
	if err := os.Chmod(fresh, 0o755); err != nil {
		return err
	}
	return os.Rename(fresh, dir)
}

// wanted reports whether a file of the wheel is data, or says under which licence and version the data comes.
func wanted(name string) bool {
	pkg, rest, _ := strings.Cut(name, "/")
	if strings.HasSuffix(pkg, ".dist-info") {
		return rest == "METADATA" || strings.Contains(rest, "LICENSE")
	}
	switch filepath.Ext(rest) {
	case ".parquet", ".yaml", ".json":
		return strings.HasPrefix(rest, "systems/") || strings.HasPrefix(rest, "model_configs/")
	}
	return false
}

func extract(entry *zip.File, dir string) error {
	if !fs.ValidPath(entry.Name) || !filepath.IsLocal(entry.Name) {
		return fmt.Errorf("file name %q leads out of the folder", entry.Name)
	}
	target := filepath.Join(dir, filepath.FromSlash(entry.Name))
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	in, err := entry.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(target)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
