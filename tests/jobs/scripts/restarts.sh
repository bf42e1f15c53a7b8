# A trainer that a shell loop starts twice.
for _ in 1 2; do "$1" "$2" || exit; done
