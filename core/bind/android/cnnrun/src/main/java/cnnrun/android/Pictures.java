package cnnrun.android;

import android.content.ContentResolver;
import android.graphics.Bitmap;
import android.graphics.BitmapFactory;
import android.net.Uri;
import cnnrun.app.Preprocess;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;

/** Loads bitmaps and converts them to pixels of the size that a net needs. */
public final class Pictures {
    private Pictures() {}

    /** Loads a picture of the gallery; width and height are about `longest` pixels at most. */
    public static Bitmap open(ContentResolver resolver, Uri uri, int longest) throws IOException {
        BitmapFactory.Options options = new BitmapFactory.Options();
        options.inJustDecodeBounds = true;
        decode(resolver, uri, options);
        options.inJustDecodeBounds = false;
        options.inSampleSize = 1;
        while (Math.max(options.outWidth, options.outHeight) / options.inSampleSize > longest)
            options.inSampleSize *= 2;
        Bitmap picture = decode(resolver, uri, options);
        if (picture == null) throw new IOException(uri + ": no picture that Android reads");
        return picture;
    }

    private static Bitmap decode(ContentResolver resolver, Uri uri, BitmapFactory.Options options)
        throws IOException {
        try (InputStream in = resolver.openInputStream(uri)) {
            if (in == null) throw new FileNotFoundException(uri.toString());
            return BitmapFactory.decodeStream(in, null, options);
        }
    }

    /** ARGB pixels of the whole picture, stretched to the net's size. */
    public static int[] pixels(Bitmap picture, Preprocess size) {
        Bitmap scaled = Bitmap.createScaledBitmap(picture, size.width, size.height, true);
        int[] argb = new int[size.width * size.height];
        scaled.getPixels(argb, 0, size.width, 0, 0, size.width, size.height);
        return argb;
    }
}
