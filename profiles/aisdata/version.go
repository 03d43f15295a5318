package aisdata

import (
	"cmp"
	"slices"
	"strconv"
)

// compareVersions orders version numbers of Python packages: 1.0.dev1 < 1.0rc1 < 1.0 < 1.0.post1.
func compareVersions(a, b string) int {
	return slices.Compare(versionKey(a), versionKey(b))
}

// isRelease reports whether a folder is named after a version, not after a commit.
func isRelease(v string) bool { return v != "" && '0' <= v[0] && v[0] <= '9' }

// versionKey turns a version into numbers that compare as the versions do. Words stand below or above the end.
func versionKey(v string) (key []int) {
	for i := 0; i < len(v); {
		start := i
		switch c := v[i]; {
		case '0' <= c && c <= '9':
			for i < len(v) && '0' <= v[i] && v[i] <= '9' {
				i++
			}
			n, _ := strconv.Atoi(v[start:i])
			key = append(key, n+2) // above the end and post
		case 'a' <= c && c <= 'z':
			for i < len(v) && 'a' <= v[i] && v[i] <= 'z' {
				i++
			}
			key = append(key, wordRank(v[start:i]))
		default:
			i++
		}
	}
	return append(key, 0)
}

func wordRank(word string) int {
	ranks := []string{"dev", "a", "alpha", "b", "beta", "rc"}
	if i := slices.Index(ranks, word); i >= 0 {
		return i - len(ranks)
	}
	return cmp.Compare(word, "") // post
}
