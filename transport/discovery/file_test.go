package discovery

func open(t *testing.T, root string) *File {
	t.Helper()
	f, err := OpenFile(FileOptions{Root: root, Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close(context.Background()) })
	return f
}

func count(t *testing.T, root string) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "v1", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// TestManyAtOnce registers many workers through two stores at the same moment; every record is there, every record is
// kept alive, and none is left behind.
func TestManyAtOnce(t *testing.T) {
	root := t.TempDir()
	stores := []*File{open(t, root), open(t, root)}
	var group sync.WaitGroup
	const workers = 64
	for w := range workers {
		group.Go(func() {
			s := stores[w%2]
			id := s.NewID()
			e := Endpoint{"dynamo", "backend", "generate"}
			for _, r := range []Record{Model{Endpoint: e, ID: id, Card: json.RawMessage("{}")},
				Instance{Endpoint: e, ID: id, Codec: "msgpack"}} {
				if err := Publish(t.Context(), s, r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if n := count(t, root); n != 2*workers {
		t.Fatalf("%d files, want %d", n, 2*workers)
	}
	old := time.Now().Add(-fileTTL / 2)
	files, _ := filepath.Glob(filepath.Join(root, "v1", "*", "*"))
	for _, f := range files {
		if err := os.Chtimes(f, old, old); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range stores {
		s.touchAll()
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || time.Since(info.ModTime()) > fileTTL/4 {
			t.Errorf("%s was not touched: %v", f, err)
		}
	}
	for _, s := range stores {
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if n := count(t, root); n != 0 {
		t.Errorf("%d files are left", n)
	}
}

func TestLostRecordsComeBack(t *testing.T) {
	root := t.TempDir()
	f := open(t, root)
	e := Endpoint{"dynamo", "backend", "generate"}
	kept, dropped := Instance{Endpoint: e, ID: 1}, Instance{Endpoint: e, ID: 2}
	for _, r := range []Record{kept, dropped} {
		if err := Publish(t.Context(), f, r); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.ReadFile(f.path(kept.Key()))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Delete(t.Context(), dropped.Key()); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(root, "v1")); err != nil {
		t.Fatal(err)
	}
	f.touchAll()
	after, err := os.ReadFile(f.path(kept.Key()))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("got %q, %v, want %q", after, err, before)
	}
	if n := count(t, root); n != 1 || f.Recreated() != 1 {
		t.Errorf("%d files, %d recreated, want one of each", n, f.Recreated())
	}
}

func TestSweepDeletesTheDead(t *testing.T) {
	root := t.TempDir()
	f := open(t, root)
	e := Endpoint{"dynamo", "backend", "generate"}
	if err := Publish(t.Context(), f, Instance{Endpoint: e, ID: 1}); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * fileTTL)
	for _, name := range []string{"dead", scrapPrefix + "0123456789abcdef"} {
		path := filepath.Join(f.dir(Instances), name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	f.sweep()
	if n := count(t, root); n != 1 {
		t.Errorf("%d files, want the living one", n)
	}
	list, err := f.List(t.Context(), Instances)
	if err != nil || len(list) != 1 || list["dynamo/backend/generate/1"] == nil {
		t.Errorf("got %v, %v", list, err)
	}
}

func TestFolderNotWritable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := OpenFile(FileOptions{Root: filepath.Join(file, "below")})
	var wrong *engine.SettingError
	if !errors.As(err, &wrong) || wrong.Setting != "DYN_FILE_KV" || !strings.Contains(wrong.Given, file) {
		t.Fatalf("got %v", err)
	}
}

