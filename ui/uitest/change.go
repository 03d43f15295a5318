package uitest

import "mockbench/engine"

// Tune changes settings at once.
func (w *Worker) Tune(t engine.Tuning) (func() error, error) { return w.configure(w.Config().With(t)) }

// Restart changes settings at once, unless Hold was called: then it waits for Hurry.
func (w *Worker) Restart(c engine.Config) (func() error, error) {
	w.mu.Lock()
	held := w.held
	w.mu.Unlock()
	if held == nil {
		return w.configure(c)
	}
	return func() error {
		<-held
		_, err := w.configure(c)
		return err
	}, nil
}

func (w *Worker) configure(c engine.Config) (func() error, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := c.NumGPUBlocks; n != len(w.blocks) {
		w.blocks, w.evicted, w.load.TotalBlocks, w.load.ActiveBlocks = make([]engine.BlockState, n), nil, n, 0
	}
	w.config = c
	return func() error { return nil }, nil
}

// Hold makes restarts wait for Hurry.
func (w *Worker) Hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = make(chan struct{})
}

// Hurry lets a restart end.
func (w *Worker) Hurry() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held != nil {
		close(w.held)
		w.held = nil
	}
}

// Restarting reports whether restarts wait for Hurry.
func (w *Worker) Restarting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held != nil
}
