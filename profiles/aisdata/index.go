package aisdata

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"

	"golang.org/x/net/html"
)

// defaultIndex is asked if the environment names no index.
const defaultIndex = "https://pypi.org/simple"

// Distributions that carry the data: the released one, and the one whose answers Dynamo 1.6.1 was recorded with.
const (
	Released = "aiconfigurator-core"
	Recorded = "aisimulate"
)

// DefaultVersion is the version of a distribution that is fetched.
func DefaultVersion(distribution string) string {
	if distribution == Recorded {
		return "0.13.0.dev202610130000000070"
	}
	return "0.12.0"
}

// wheel is a file that a package index offers.
type wheel struct {
	name   string
	url    string
	sha256 string // hexadecimal
}

// findWheel asks a package index for the wheel of a version. Wheels differ in compiled code only, so any of them does.
func findWheel(ctx context.Context, client *http.Client, index, distribution, version string) (wheel, error) {
	page := strings.TrimSuffix(index, "/") + "/" + distribution + "/"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return wheel{}, err
	}
	request.Header.Set("Accept", "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1")
	response, err := client.Do(request)
	if err != nil {
		return wheel{}, fmt.Errorf("package index: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return wheel{}, fmt.Errorf("package index: %s: %s", page, response.Status)
	}
	const most = 16 << 20
	body, err := io.ReadAll(io.LimitReader(response.Body, most))
	if err != nil {
		return wheel{}, fmt.Errorf("package index: %w", err)
	}
	list := fromHTML
	if strings.Contains(response.Header.Get("Content-Type"), "json") {
		list = fromJSON
	}
	offered, err := list(body)
	if err != nil {
		return wheel{}, fmt.Errorf("package index: %s: %w", page, err)
	}
	prefix := strings.ReplaceAll(distribution, "-", "_") + "-" + version + "-"
	for _, w := range offered {
		if !strings.HasPrefix(w.name, prefix) || !strings.HasSuffix(w.name, ".whl") {
			continue
		}
		if w.sha256 == "" {
			return wheel{}, fmt.Errorf("package index: %s gives no SHA-256 of %s", page, w.name)
		}
		target, err := response.Request.URL.Parse(w.url)
		if err != nil {
			return wheel{}, fmt.Errorf("package index: %w", err)
		}
		w.url = target.String()
		return w, nil
	}
	return wheel{}, fmt.Errorf("package index: %s offers no wheel of version %s", page, version)
}

// fromJSON reads the JSON form of a page of the index.
func fromJSON(body []byte) (list []wheel, err error) {
	var answer struct {
		Files []struct {
			Filename string
			URL      string
			Hashes   map[string]string
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	for _, f := range answer.Files {
		list = append(list, wheel{f.Filename, f.URL, f.Hashes["sha256"]})
	}
	return list, nil
}

// fromHTML reads the HTML form: each file is a link whose fragment holds the hash.
func fromHTML(body []byte) (list []wheel, err error) {
	for z := html.NewTokenizer(strings.NewReader(string(body))); ; {
		if z.Next() == html.ErrorToken {
			if !errors.Is(z.Err(), io.EOF) {
				return nil, z.Err()
			}
			return list, nil
		}
		token := z.Token()
		if token.Type != html.StartTagToken || token.Data != "a" {
			continue
		}
		for _, a := range token.Attr {
			if a.Key != "href" {
				continue
			}
			link, err := url.Parse(a.Val)
			if err != nil {
				return nil, err
			}
			hash, _ := strings.CutPrefix(link.Fragment, "sha256=")
			link.Fragment = ""
			list = append(list, wheel{path.Base(link.Path), link.String(), hash})
		}
	}
}
