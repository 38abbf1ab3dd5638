# What the calls of an expression stand for where the interpreter's own function
# could do too much in one step. Names with two underscores are ours; an
# expression cannot say them. A plain name in a body is the interpreter's own.

def __op_add(a; b): __sums(a; b) | .[0] + .[1];
def __op_sub(a; b): __differences(a; b) | .[0] - .[1];
def __op_mul(a; b): __products(a; b) | .[0] * .[1];
def __op_div(a; b): __differences(a; b) | .[0] / .[1];
def __op_mod(a; b): __differences(a; b) | .[0] % .[1];
# += and its like call these
def _add(a; b): __op_add(a; b);
def _subtract(a; b): __op_sub(a; b);
def _multiply(a; b): __op_mul(a; b);
def _divide(a; b): __op_div(a; b);
def _modulo(a; b): __op_mod(a; b);

def __add: __joined("") | add;
def __add(f): [f] | __add;
def __join($s): __joined($s) | join($s);
def __transpose: __table | transpose;

def __tojson: __whole | tojson;
def __tostring: __whole | tostring;
def __fromjson: __whole | fromjson;
def __tonumber: __digits | tonumber;
def __implode: __whole | implode;
def __explode: __whole | explode;
def __split($s): __both($s) | split($s);
def __error: __whole | error;
def __error($x): __both($x) | error($x);

def __flatten: __whole | flatten;
def __flatten($n): __whole | flatten($n);
def __sort: __whole | sort;
def __unique: __whole | unique;
def __min: __whole | min;
def __max: __whole | max;
def __sort_by(f): [.[] | [f]] as $k | __both($k) | _sort_by($k);
def __group_by(f): [.[] | [f]] as $k | __both($k) | _group_by($k);
def __unique_by(f): [.[] | [f]] as $k | __both($k) | _unique_by($k);
def __min_by(f): [.[] | [f]] as $k | __both($k) | _min_by($k);
def __max_by(f): [.[] | [f]] as $k | __both($k) | _max_by($k);
def __bsearch($x): __both($x) | bsearch($x);

def __contains($x): __times($x) | contains($x);
def __inside($x): __times($x) | inside($x);
def __indices($x): __search($x) | indices($x);
def __index($x): __search($x) | index($x);
def __rindex($x): __search($x) | rindex($x);
def __IN(s): any(__eq(s; .); .);
def __IN(src; s): any(__eq(src; s); .);
def __INDEX(stream; f): reduce stream as $row ({}; .[$row | f | __tostring] = $row);
def __INDEX(f): __INDEX(.[]; f);
def __JOIN($idx; f): [.[] | [., $idx[f | __at]]];
def __JOIN($idx; stream; f): stream | [., $idx[f | __at]];
def __JOIN($idx; stream; f; g): stream | [., $idx[f | __at]] | g;

def __match($re): __regexp($re; null) | match($re);
def __match($re; $flags): __regexp($re; $flags) | match($re; $flags);
def __capture($re): __regexp($re; null) | capture($re);
def __capture($re; $flags): __regexp($re; $flags) | capture($re; $flags);
def __scan($re): __regexp($re; "g") | scan($re);
def __scan($re; $flags): __regexp($re; "g") | scan($re; $flags);
def __splits($re): __regexp($re; "g") | splits($re);
def __splits($re; $flags): __regexp($re; "g") | splits($re; $flags);
def __split($re; $flags): __regexp($re; "g") | split($re; $flags);
def __sub($re; f): __regexp($re; null) | sub($re; f);
def __sub($re; f; $flags): __regexp($re; $flags) | sub($re; f; $flags);
def __gsub($re; f): __regexp($re; "g") | gsub($re; f);
def __gsub($re; f; $flags): __regexp($re; "g") | gsub($re; f; $flags);

def __getpath(p): getpath(p | __path);
def __setpath($p; $x): ($p | __path) as $p | setpath($p; $x);
def __delpaths($ps): __paths($ps) | delpaths($ps);
def __del(f): [path(f)] as $ps | __delpaths($ps);
def __pick(f): . as $v | reduce path(f) as $p (null; __setpath($p; $v | getpath($p)));
def __nth($n): .[$n | __at];
def __fromstream(f): fromstream(f | __event);
def __from_entries: [.[] | {(.key // .Key // .name // .Name): (if has("value") then .value else .Value end)}] | __add // {};
def __with_entries(f): to_entries | map(f) | __from_entries;

# Zizq's jaq has these, the interpreter does not. Members have no order here.
def keys_unsorted: keys;
def debug: .;
def debug(f): (f | empty), .;
