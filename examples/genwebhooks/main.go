// Command genwebhooks writes examples/webhooks.ndjson: one day of webhook
// events of an invented shop platform, one JSON object per line.
//
//	go run ./examples/genwebhooks > examples/webhooks.ndjson
//
// The same seed gives the same bytes. The file is made to look like what a
// queue really meets: names in many scripts, numbers that a float64 cannot
// hold, nulls, empty objects, and now and then a text of some kilobytes. No
// person, company or address in it is real.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"
)

// event is one line of the file.
type event struct {
	ID      string    `json:"id"`
	Type    string    `json:"type"`
	Created time.Time `json:"created"`
	Account string    `json:"account"`
	Data    any       `json:"data"`
}

// object is a JSON object; encoding/json sorts its keys, so the bytes are
// always the same.
type object map[string]any

// kind is one type of event: how often it comes, and what it says.
type kind struct {
	name   string
	weight int
	data   func(g *generator) object
}

var kinds = []kind{
	{"order.created", 18, orderCreated},
	{"order.paid", 15, orderPaid},
	{"shipment.dispatched", 12, shipmentDispatched},
	{"shipment.delivered", 10, shipmentDelivered},
	{"user.signed_up", 9, userSignedUp},
	{"customer.updated", 8, customerUpdated},
	{"invoice.finalized", 7, invoiceFinalized},
	{"subscription.renewed", 6, subscriptionRenewed},
	{"payment.failed", 5, paymentFailed},
	{"inventory.low", 5, inventoryLow},
	{"payment.refunded", 3, paymentRefunded},
	{"subscription.cancelled", 2, subscriptionCancelled},
}

// place keeps a city with its country and currency, so that addresses agree.
type place struct {
	city, region, postcode, country, currency string
	street                                    string
	names                                     []string
}

var places = []place{
	{"Zürich", "ZH", "8004", "CH", "CHF", "Langstrasse %d", []string{"Jörg Müller", "Ursina Bösch", "Léa Favre"}},
	{"Kraków", "małopolskie", "31-042", "PL", "PLN", "ul. Świętego Jana %d", []string{"Łukasz Wójcik", "Małgorzata Dąbrowska"}},
	{"São Paulo", "SP", "01310-100", "BR", "BRL", "Rua Conceição %d", []string{"João Gonçalves", "Luíza Araújo", "Conceição Brandão"}},
	{"東京都", "渋谷区", "150-0002", "JP", "JPY", "渋谷 2-%d", []string{"佐藤 美咲", "鈴木 大輔"}},
	{"København", "", "1620", "DK", "DKK", "Vesterbrogade %d, 2. tv", []string{"Søren Kjær", "Åse Østergård"}},
	{"תל אביב", "", "6688312", "IL", "ILS", "רוטשילד %d", []string{"נועה לוי", "יוסף כהן"}},
	{"Αθήνα", "Αττική", "105 63", "GR", "EUR", "Ερμού %d", []string{"Ελένη Παπαδοπούλου", "Νίκος Γεωργίου"}},
	{"București", "Sector 1", "010071", "RO", "RON", "Calea Victoriei %d", []string{"Ștefan Ionescu", "Ana-Țica Bălan"}},
	{"Galway", "Connacht", "H91 E2K3", "IE", "EUR", "%d Shop Street", []string{"Siobhán O'Brien", "Pádraig Ó Ceallaigh"}},
	{"Portland", "OR", "97205", "US", "USD", "%d SW Alder St, Apt \"B\"", []string{"Maria Lopez-O'Neil", "Wei Chen", "Dee <dee@example.com>"}},
	{"القاهرة", "", "11511", "EG", "EGP", "شارع طلعت حرب %d", []string{"ليلى حسن", "عمر عبد الله"}},
	{"대구광역시", "중구", "41911", "KR", "KRW", "동성로 %d길", []string{"김서연", "박지훈"}},
}

var products = []struct {
	sku, title string
	grams      float64
}{
	{"TEA-SEN-100", "Sencha, 100 g", 112.5},
	{"CUP-BLU-02", "Tasse “Blau”, 2er-Set", 640},
	{"LMP-DSK-7", "Desk lamp, 7 W", 1180.25},
	{"NBK-A5-DOT", "Notebook A5 • dotted", 231},
	{"SOAP-OLV", "Σαπούνι ελιάς", 98.4},
	{"CBL-USBC-1M", "USB-C cable, 1 m", 41},
	{"BOOK-0817", "「夜の電車」文庫", 187.2},
	{"SCK-WOOL-42", "Wool socks, size 42", 84},
	{"MUG-CAT-🐈", "Mug 🐈 (dishwasher safe)", 355},
	{"PLANT-FIC-S", "Ficus, small", 2250.75},
}

var sentences = []string{
	"The parcel was left with the neighbour on the second floor.",
	"Bitte nicht vor 18 Uhr klingeln – das Baby schläft.",
	"Customer asked twice whether the refund covers shipping; it does.",
	"Le colis était ouvert à l'arrivée, mais rien ne manquait.",
	"Please put the two orders into one box if you still can.",
	"配達は土曜日の午前中にお願いします。",
	"Called back at 14:05, no answer, left a message.",
	"See \"terms & conditions\", section 4 <returns>, last paragraph.",
	"Colour differs from the picture: ordered #0a7cff, received something greener.",
	"Path of the label on the printer: C:\\labels\\out\\today.zpl\tretry later",
	"Danke! 🎉",
}

// generator draws everything from one seeded source.
type generator struct {
	*rand.Rand
	now time.Time
}

func main() {
	seed := flag.Uint64("seed", 20260301, "the `number` all choices follow from")
	count := flag.Int("n", 1200, "how many `events`")
	flag.Parse()

	if err := run(*seed, *count); err != nil {
		fmt.Fprintln(os.Stderr, "genwebhooks:", err)
		os.Exit(1)
	}
}

func run(seed uint64, count int) error {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0))}
	accounts := make([]string, 40)
	for i := range accounts {
		accounts[i] = "acct_" + g.token(10)
	}
	out := bufio.NewWriter(os.Stdout)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false) // < and & are plain JSON; receivers must cope
	for _, at := range g.day(count) {
		g.now = at
		k := g.kind()
		e := event{ID: "evt_" + g.token(22), Type: k.name, Created: at, Account: accounts[g.few(len(accounts))], Data: k.data(g)}
		if err := enc.Encode(e); err != nil {
			return fmt.Errorf("writing %s: %w", e.ID, err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the last events: %w", err)
	}
	return nil
}

// day is the moments of one day in order: a quiet night, a busy evening.
func (g *generator) day(count int) []time.Time {
	start := time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)
	at := make([]time.Time, count)
	for i := range at {
		hour := g.Float64() * 24
		for g.Float64() > 0.55-0.45*math.Cos((hour-19)/24*2*math.Pi+math.Pi) {
			hour = g.Float64() * 24
		}
		at[i] = start.Add(time.Duration(hour * float64(time.Hour))).Truncate(time.Millisecond)
	}
	slices.SortFunc(at, time.Time.Compare)
	return at
}

func (g *generator) kind() kind {
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	n := g.IntN(total)
	for _, k := range kinds {
		if n -= k.weight; n < 0 {
			return k
		}
	}
	return kinds[0]
}

// few draws below n, small numbers far more often: some accounts are big.
func (g *generator) few(n int) int {
	x := g.Float64()
	return int(x * x * float64(n))
}

func pick[T any](g *generator, from []T) T { return from[g.IntN(len(from))] }

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g *generator) token(n int) string {
	const alphabet = "0123456789abcdefghijkmnpqrstuvwxyz"
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[g.IntN(len(alphabet))]
	}
	return string(b)
}

// ledger is an entry number above 2^53, where a float64 loses the last digits.
func (g *generator) ledger() uint64 { return 1<<53 + 1 + g.Uint64N(1<<62) }

func (g *generator) digits(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('0' + g.IntN(10))
	}
	return string(b)
}

// text is between low and high bytes long, or a little more.
func (g *generator) text(low, high int) string {
	want := low + g.IntN(high-low)
	var b strings.Builder
	for b.Len() < want {
		b.WriteString(pick(g, sentences))
		b.WriteString(pick(g, []string{" ", " ", "\n"}))
	}
	return strings.TrimSpace(b.String())
}

// note is mostly null, sometimes a sentence, rarely a long story.
func (g *generator) note() any {
	switch n := g.IntN(100); {
	case n < 60:
		return nil
	case n < 94:
		return pick(g, sentences)
	default:
		return g.text(2000, 3900)
	}
}

func (g *generator) address(p place) object {
	a := object{
		"name": pick(g, p.names), "line1": fmt.Sprintf(p.street, 1+g.IntN(180)), "line2": nil,
		"city": p.city, "postcode": p.postcode, "country": p.country,
	}
	if p.region != "" {
		a["region"] = p.region
	}
	return a
}

// amount is in the smallest unit of the currency, as an integer.
func (g *generator) amount() int { return 190 + g.few(48000) }

func (g *generator) items() (list []object, total int) {
	for range 1 + g.few(5) {
		p, price, quantity := pick(g, products), 150+g.few(9000), 1+g.few(4)
		total += price * quantity
		list = append(list, object{
			"sku": p.sku, "title": p.title, "quantity": quantity,
			"unit_price": price, "weight_g": p.grams * float64(quantity),
		})
	}
	return list, total
}

func orderCreated(g *generator) object {
	p := pick(g, places)
	items, total := g.items()
	o := object{
		"order": "ord_" + g.token(12), "number": 100000 + g.IntN(900000), "currency": p.currency,
		"items": items, "total": total, "ship_to": g.address(p), "note": g.note(),
		"gift": g.chance(8), "discount": nil,
	}
	if g.chance(20) {
		o["discount"] = object{"code": strings.ToUpper(g.token(6)), "rate": float64(5+5*g.IntN(6)) / 100}
	}
	return o
}

func orderPaid(g *generator) object {
	method := pick(g, []object{
		{"type": "card", "brand": "visa", "last4": g.digits(4)},
		{"type": "card", "brand": "mastercard", "last4": g.digits(4)},
		{"type": "transfer", "reference": "RF" + g.digits(14)},
		{"type": "wallet", "token": nil},
	})
	return object{
		"order": "ord_" + g.token(12), "payment": "pay_" + g.token(16), "amount": g.amount(),
		"currency": pick(g, places).currency, "method": method, "ledger_entry": g.ledger(),
		"fee": float64(g.IntN(900)) / 100, "risk_score": math.Round(g.Float64()*1e6) / 1e6,
	}
}

func paymentFailed(g *generator) object {
	o := object{
		"payment": "pay_" + g.token(16), "amount": g.amount(), "currency": pick(g, places).currency,
		"code":    pick(g, []string{"card_declined", "insufficient_funds", "expired_card", "processor_timeout"}),
		"message": "The bank refused the payment.", "retry": g.chance(60), "ledger_entry": nil,
	}
	if g.chance(25) { // what the processor answered, kept for the support team
		o["processor_response"] = "<?xml version=\"1.0\"?>\n<response><text>" + g.text(2000, 3800) + "</text></response>"
	}
	return o
}

func paymentRefunded(g *generator) object {
	return object{
		"payment": "pay_" + g.token(16), "refund": "ref_" + g.token(16), "amount": -g.amount(),
		"currency": pick(g, places).currency, "ledger_entry": g.ledger(), "reason": g.note(),
	}
}

func customerUpdated(g *generator) object {
	p := pick(g, places)
	return object{
		"customer": "cus_" + g.token(12), "version": 1 + g.IntN(60),
		"changed":  pick(g, [][]string{{"address"}, {"email"}, {"address", "phone"}, {}}),
		"previous": object{"address": g.address(pick(g, places))}, "current": object{"address": g.address(p)},
		"lifetime_value": math.Round(g.Float64()*1e7) / 100,
	}
}

func subscriptionRenewed(g *generator) object {
	return object{
		"subscription": "sub_" + g.token(12), "plan": pick(g, []string{"basic", "team", "scale"}),
		"amount": g.amount(), "currency": pick(g, places).currency, "period": 1 + g.IntN(36),
		"next":  g.now.AddDate(0, 1, 0),
		"usage": []float64{math.Round(g.Float64()*1e4) / 1e4, 0, 1.5e-7, 6.02214076e23},
	}
}

func subscriptionCancelled(g *generator) object {
	return object{
		"subscription": "sub_" + g.token(12), "at_period_end": g.chance(70), "ends": nil,
		"feedback": g.note(),
	}
}

func invoiceFinalized(g *generator) object {
	items, total := g.items()
	tax := pick(g, []float64{0, 0.077, 0.19, 0.2, 0.23})
	o := object{
		"invoice": "inv_" + g.token(12), "number": fmt.Sprintf("2026-%06d", g.IntN(1e6)), "lines": items,
		"net": total, "tax_rate": tax, "tax": int(float64(total) * tax), "currency": pick(g, places).currency,
		"due": g.now.AddDate(0, 0, 30).Format(time.DateOnly), "ledger_entry": g.ledger(),
	}
	if g.chance(10) {
		o["terms"] = g.text(2000, 3600)
	}
	return o
}

func shipmentDispatched(g *generator) object {
	return object{
		"shipment": "shp_" + g.token(12), "carrier": pick(g, []string{"northpost", "rapidex", "幸運便"}),
		"tracking": strings.ToUpper(g.token(2)) + g.digits(18), "barcode": g.ledger(), "parcels": 1 + g.few(3),
		"weight_kg": math.Round(g.Float64()*12000) / 1000, "ship_to": g.address(pick(g, places)),
		"expected": g.now.AddDate(0, 0, 1+g.IntN(6)).Format(time.DateOnly),
	}
}

func shipmentDelivered(g *generator) object {
	return object{
		"shipment": "shp_" + g.token(12), "tracking": strings.ToUpper(g.token(2)) + g.digits(18),
		"signed_by": pick(g, []any{nil, "neighbour", pick(g, pick(g, places).names)}),
		"position":  []float64{math.Round((g.Float64()*180-90)*1e5) / 1e5, math.Round((g.Float64()*360-180)*1e5) / 1e5},
	}
}

func userSignedUp(g *generator) object {
	if g.chance(30) {
		return object{"user": g.IntN(1e6)}
	}
	return object{
		"user": g.IntN(1e6), "name": pick(g, pick(g, places).names),
		"locale": pick(g, []string{"de-CH", "pt-BR", "ja-JP", "he-IL", "en-IE"}), "referrer": nil, "labels": object{},
	}
}

func inventoryLow(g *generator) object {
	return object{
		"sku": pick(g, products).sku, "left": g.IntN(12), "warehouse": g.IntN(6),
		"revision": g.ledger(), "days_left": math.Round(g.Float64()*90) / 10,
	}
}
