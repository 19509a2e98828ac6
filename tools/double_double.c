/* Products of double-double matrices on one core: plain loops, and the same loops for the vector units.

   gcc -O2 -ffp-contract=off -fno-tree-vectorize tools/double_double.c -o plain -lm && ./plain
   gcc -O3 -ffp-contract=off -march=native tools/double_double.c -o vectors -lm && ./vectors

   Prints the best Gflop/s of twenty runs by processor time; 2 n^3 operations, as in the lessons. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { N = 256, RUNS = 20 };

typedef double Matrix[N][N];
static Matrix a, a_low, b, b_low, c, c_low;

/* C += A B, element by element with sums of 20 operations and products of 7. */
static void multiply(void)
{
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++) {
            double x = a[i][k], x_low = a_low[i][k];
            for (int j = 0; j < N; j++) {
                double y = b[k][j], y_low = b_low[k][j];
                double p = x * y;
                double e = fma(x, y, -p);
                e = fma(x, y_low, e);
                e = fma(x_low, y, e);
                double product = p + e, rest = e - (product - p);

                double z = c[i][j], z_low = c_low[i][j];
                double s = z + product, t = s - z;
                double lost = (z - (s - t)) + (product - t);
                double low = z_low + rest, u = low - z_low;
                double lost_low = (z_low - (low - u)) + (rest - u);
                lost += low;
                double high = s + lost;
                lost = lost - (high - s) + lost_low;
                c[i][j] = high + lost;
                c_low[i][j] = lost - (c[i][j] - high);
            }
        }
}

int main(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = rand() / (double)RAND_MAX;
            b[i][j] = rand() / (double)RAND_MAX;
            a_low[i][j] = a[i][j] * 0x1p-54;
            b_low[i][j] = b[i][j] * 0x1p-54;
        }
    double best = INFINITY;
    for (int run = 0; run < RUNS; run++) {
        clock_t begin = clock();
        multiply();
        best = fmin(best, (clock() - begin) / (double)CLOCKS_PER_SEC);
    }
    printf("%.2f Gflop/s (C[0][0] = %.17g + %g)\n", 2.0 * N * N * N / best / 1e9, c[0][0], c_low[0][0]);
}
