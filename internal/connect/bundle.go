package connect

import "context"

// BundleBytesMax is how much a source hands over at once, unless one event is larger.
const BundleBytesMax = 2_048_000

// Bundle gathers the events of one tag until they are taken.
type Bundle struct {
	Records
	Into Intake
}

// Full reports whether it is time to take what is there.
func (b *Bundle) Full() bool { return len(b.Events) >= BundleBytesMax-BundleBytesMax/16 }

// Take hands over what is there, if there is something.
func (b *Bundle) Take(ctx context.Context) error {
	if b.Count == 0 {
		return nil
	}
	if err := b.Into.Take(ctx, b.Records); err != nil {
		return err
	}
	b.Events, b.Count = b.Events[:0], 0
	return nil
}
