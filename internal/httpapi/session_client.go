package httpapi

import (
	"context"
	"time"
)

// A driver that waits for results is alive as long as it waits, however long that
// is: the engine hears of it three times within the client_timeout of its session.

// waitNews waits for news of a session; over is that wait has ended before.
func (h *gridRoom) waitNews(wait context.Context, id string, news <-chan struct{}, ask *resultsAsk) (over bool, err error) {
	for {
		if ask.within == 0 {
			select {
			case <-news:
				return false, nil
			case <-wait.Done():
				return true, nil
			}
		}
		beat, cancel := context.WithTimeout(wait, max(time.Duration(ask.within)*time.Millisecond/3, time.Millisecond))
		select {
		case <-news:
			cancel()
			return false, nil
		case <-beat.Done():
			cancel()
		}
		if wait.Err() != nil {
			return true, nil
		}
		if ask.within, err = h.engine.Grid.Heard(wait, id); err != nil {
			return wait.Err() != nil, err
		}
	}
}
