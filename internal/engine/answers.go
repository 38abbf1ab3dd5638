package engine

// answers is the goroutine that waits for the disk, and tells who waits what came of it.
type answers struct {
	*Engine

	batches <-chan *batch
}

// loop waits for the disk, in order, and answers.
func (a *answers) loop() {
	defer close(a.stopped)
	defer a.watchers.ringAll()
	var lost error // why a batch failed: those behind it stand on it, until the store is opened again
	for b := range a.batches {
		if b.err == nil {
			b.err = lost
		}
		a.settle(b)
		if lost = b.err; b.heals {
			lost = nil
		}
	}
}

// settle waits until the batch is durable and answers its commands. With a
// fault in that those that were not answered are told what they are when a commit
// fails: it is not known whether they took effect.
func (a *answers) settle(b *batch) {
	err := a.health.behind("answer", func() { a.answer(b) })
	if err == nil {
		return
	}
	b.err = err
	for i := range b.gifts {
		b.gifts[i].to.finish(ErrStreamEnded)
	}
	refuse(b.ops[b.told:], err)
}

func (a *answers) answer(b *batch) {
	if b.err == nil && b.commit != nil {
		watch := startWatch()
		if b.err = b.commit.Wait(); b.err != nil {
			a.health.fail(b.err)
		}
		a.parts.timed(len(b.ops), b.took, watch.took())
	}
	for _, tell := range b.tell {
		tell(b.err != nil)
	}
	a.watchers.ring(b.news)
	if b.err == nil {
		for i := range b.gifts {
			b.gifts[i].to.give(b.gifts[i].d)
		}
		for i := range b.gifts {
			b.gifts[i].to.ring()
		}
		a.spareGifts(b.gifts)
		b.gifts = nil
	} else {
		for i := range b.gifts { // whoever it served is not in line any more, and must not wait for nothing
			b.gifts[i].to.finish(ErrStreamEnded)
		}
	}
	for _, o := range b.ops {
		if b.err != nil {
			o.err = b.err
		}
		b.told++
		o.done <- struct{}{}
	}
}

// spareGifts keeps the room that deliveries took which were handed over.
func (a *answers) spareGifts(list []gift) {
	clear(list)
	list = list[:0]
	a.gifts.Put(&list)
}

// refuse answers commands that will not run.
func refuse(list []*op, why error) {
	for _, o := range list {
		o.err = why
		o.done <- struct{}{}
	}
}
