package app

import (
	"context"

	"mockbench/cmd/mockbench/settings"
	"mockbench/transport/discovery"
	"mockbench/transport/modelcard"
)

// pool is the workers of one role as frontends see them.
type pool struct {
	*settings.Pool
	endpoint discovery.Endpoint
	card     *modelcard.Card // of every worker, without its bootstrap port: making it reads the files
}

// parsePools reads where the workers are to be registered.
func (s *serving) parsePools() error {
	for i := range s.p.s.Pools {
		p := &s.p.s.Pools[i]
		e, err := settings.ParseEndpoint(p.Endpoint)
		if err != nil {
			return err
		}
		s.pools = append(s.pools, &pool{Pool: p, endpoint: e})
	}
	return nil
}

// pool returns the pool of a worker.
func (s *serving) pool(worker int) *pool {
	for _, p := range s.pools {
		if worker < p.First+p.Workers {
			return p
		}
	}
	return nil
}

// makeCards makes the model card of each pool.
func (s *serving) makeCards() (err error) {
	for _, p := range s.pools {
		if p.card, err = s.makeCard(p); err != nil {
			return modelError(err)
		}
	}
	return nil
}

// checkModel returns an error if another model is registered where one of the pools is or is to be.
func (s *serving) checkModel(ctx context.Context) error {
	for _, p := range s.pools {
		if err := discovery.CheckModel(ctx, s.store, p.endpoint, p.card.DisplayName, p.card.SourcePath); err != nil {
			return err
		}
	}
	return nil
}
